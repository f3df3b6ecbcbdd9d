/* SPDX-License-Identifier: MIT */
/* python_parked.c - finds what threads of CPython are parked for. */
#include "parked.h"

#include <dlfcn.h>
#include <link.h>

#include "locks/lock_types.h"
#include "reach.h"
#include "unwind.h"

#define NEAR 4096u /* bytes of stack between the hook and the frames of the interpreter's functions that called it */

/* What a parked thread has on its stack. */
struct entry {
	uintptr_t argument; /* of a mutex something further out on the same stack, else 0 */
	uintptr_t address;
	sem_t semaphore;
	uintptr_t next, previous; /* others that are parked; both 0 once it was taken from the list */
	uint8_t taken;		  /* from the list, to be woken */
};
_Static_assert(sizeof(sem_t) == 4 * sizeof(uintptr_t), "the layout is that of 64 bits");

bool ptt_python_parks;

struct range {
	uintptr_t begin, size;
};

/* The interpreter's functions that park a thread, and its functions that wake a thread, however the compiler inlined them. */
static const char *const park_names[] = {"_PySemaphore_Wait", "_PyParkingLot_Park", "_PySemaphore_Init",
					 "_PySemaphore_Destroy"};
static const char *const unpark_names[] = {"_PySemaphore_Wakeup", "_PyParkingLot_Unpark", "_PyParkingLot_UnparkAll"};
#define COUNT(names) (sizeof(names) / sizeof((names)[0]))
static struct range parks[COUNT(park_names)], unparks[COUNT(unpark_names)];

static bool find_functions(const char *const *names, struct range *found, size_t count)
{
	const ElfW(Sym) *symbol;
	Dl_info info;
	size_t i;

	for (i = 0; i < count; i++) {
		void *function = dlsym(RTLD_DEFAULT, names[i]);

		symbol = NULL;
		if (!function || !dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol)
			return false;
		found[i] = (struct range){.begin = (uintptr_t)function, .size = symbol->st_size};
	}
	return true;
}

void ptt_python_parked_start(unsigned int minor)
{
	/* later ones may have it otherwise */
	if (minor == 13 || minor == 14)
		ptt_python_parks = find_functions(park_names, parks, COUNT(parks)) &&
				   find_functions(unpark_names, unparks, COUNT(unparks));
}

static bool is_in(const struct range *functions, size_t count, const void *site)
{
	size_t i;

	for (i = 0; i < count; i++)
		if ((uintptr_t)site - functions[i].begin < functions[i].size)
			return true;
	return false;
}

/* The memory has to look like a parked thread's: the interpreter's own lists are guarded by semaphores that stand beside something else. */
static struct ptt_parked judge(const struct entry *entry, const sem_t *sem, bool is_one)
{
	bool mutex = entry->argument != 0;

	if (!is_one || !entry->address || entry->address & ~PTT_CODE_MASK ||
	    (mutex && entry->argument - (uintptr_t)sem >= NEAR))
		return (struct ptt_parked){.object = sem};
	return (struct ptt_parked){
		.object = (const void *)entry->address,
		.kind = mutex ? PTT_FUTEX_KIND_PYTHON_MUTEX : PTT_FUTEX_KIND_PYTHON_EVENT,
	};
}

static const struct entry *entry_of(const sem_t *sem)
{
	return (const struct entry *)(const void *)((const char *)sem - offsetof(struct entry, semaphore));
}

PTT_UNWATCHED struct ptt_parked ptt_find_parked(const sem_t *sem, const void *site)
{
	const struct entry *entry = entry_of(sem);

	/* it lies further out on this stack, so all beside it can be read */
	if (!is_in(parks, COUNT(parks), site) || (uintptr_t)entry - (uintptr_t)__builtin_frame_address(0) >= NEAR)
		return (struct ptt_parked){.object = sem};
	return judge(entry, sem, entry->taken <= 1 && !entry->next == !entry->previous);
}

PTT_UNWATCHED struct ptt_parked ptt_find_unparked(const sem_t *sem, const void *site)
{
	const struct entry *entry = entry_of(sem);

	/* these functions post such semaphores alone, each on the stack of a thread that waits until it is done */
	if (!is_in(unparks, COUNT(unparks), site))
		return (struct ptt_parked){.object = sem};
	return judge(entry, sem, entry->taken == 1 && !entry->next && !entry->previous);
}
