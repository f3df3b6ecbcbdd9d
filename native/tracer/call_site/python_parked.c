/* SPDX-License-Identifier: MIT */
/* python_parked.c - finds the mutex or event that a thread of CPython is parked for. */
#include "parked.h"

#include <dlfcn.h>
#include <link.h>

#include "locks/lock_types.h"
#include "reach.h"
#include "unwind.h"

#define NEAR 4096u /* bytes of stack between the hook and the interpreter's functions that called it, at most */

/* The struct that a parked thread has on its stack: struct wait_entry of CPython's Python/parking_lot.c. */
struct entry {
	uintptr_t argument; /* of a mutex: an address further out on the same stack; else 0 */
	uintptr_t address;
	sem_t semaphore;
	uintptr_t next, previous; /* the list of parked threads; both 0 once the entry left the list */
	uint8_t taken;		  /* the entry left the list to be woken */
};
_Static_assert(sizeof(sem_t) == 4 * sizeof(uintptr_t), "this is the layout for 64 bits");

bool ptt_python_parks;

struct range {
	uintptr_t begin, size;
};

/* The interpreter's functions that park and that wake a thread. The compiler may inline each into the next. */
static const char *const park_names[] = {"_PySemaphore_Wait", "_PyParkingLot_Park", "_PySemaphore_Init",
					 "_PySemaphore_Destroy"};
static const char *const unpark_names[] = {"_PySemaphore_Wakeup", "_PyParkingLot_Unpark", "_PyParkingLot_UnparkAll"};
#define COUNT(names) (sizeof(names) / sizeof((names)[0]))
static struct range parks[COUNT(park_names)], unparks[COUNT(unpark_names)];

static bool find_functions(const char *const *names, struct range *ranges, size_t count)
{
	const ElfW(Sym) *symbol;
	Dl_info info;
	size_t i;

	for (i = 0; i < count; i++) {
		void *function = dlsym(RTLD_DEFAULT, names[i]);

		symbol = NULL;
		if (!function || !dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol)
			return false;
		ranges[i] = (struct range){.begin = (uintptr_t)function, .size = symbol->st_size};
	}
	return true;
}

void ptt_python_parked_start(void)
{
	/* versions before 3.13 do not have these functions */
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

/* Check that the memory looks like an entry: semaphores that guard the interpreter's lists do not lie in an entry. */
static struct ptt_parked judge(const struct entry *entry, const sem_t *sem, bool is_entry)
{
	bool mutex = entry->argument != 0;

	if (!is_entry || !entry->address || entry->address & ~PTT_CODE_MASK ||
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

	/* the entry lies further out on this stack, so it is readable */
	if (!is_in(parks, COUNT(parks), site) || (uintptr_t)entry - (uintptr_t)__builtin_frame_address(0) >= NEAR)
		return (struct ptt_parked){.object = sem};
	return judge(entry, sem, entry->taken <= 1 && !entry->next == !entry->previous);
}

PTT_UNWATCHED struct ptt_parked ptt_find_unparked(const sem_t *sem, const void *site)
{
	const struct entry *entry = entry_of(sem);

	/* these functions post only semaphores of entries; the thread of the entry waits until they are done */
	if (!is_in(unparks, COUNT(unparks), site))
		return (struct ptt_parked){.object = sem};
	return judge(entry, sem, entry->taken == 1 && !entry->next && !entry->previous);
}
