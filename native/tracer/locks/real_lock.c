/* SPDX-License-Identifier: MIT */
/* real_lock.c - finds the functions behind the stubs, for each module that calls them. */
/*
 * Two modules of a process may have two versions of a library, so what a call leads to depends on where it comes from. The
 * few modules that call such functions are kept in a list that grows at its end; reading it takes no lock.
 */
#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "real_lock.h"

struct ptt_lock_caller ptt_lock_callers[PTT_LOCK_CALLERS];
uint64_t ptt_lock_sites[PTT_LOCK_SITES];
static uint32_t caller_count; /* release: pairs with the acquire of the threads that read the list */
static pthread_mutex_t growing = PTHREAD_MUTEX_INITIALIZER;

/* ------------------------------------------------------------ modules */

struct extent {
	uintptr_t inside, begin, end;
};

static int find_extent(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct extent *wanted = arg;
	uintptr_t begin = UINTPTR_MAX, end = 0;
	bool found = false;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + part->p_vaddr;

		if (part->p_type != PT_LOAD)
			continue;
		begin = at < begin ? at : begin;
		end = at + part->p_memsz > end ? at + part->p_memsz : end;
		found = found || wanted->inside - at < part->p_memsz;
	}
	if (found) {
		wanted->begin = begin;
		wanted->end = end;
	}
	return found;
}

/* ------------------------------------------------------------ functions */

/* In a module or what it was linked with, by the name that it is loaded by. */
static void *find_in(const char *path, const char *name)
{
	void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD), *found = NULL;

	if (handle) {
		found = ptt_dlsym(handle, name);
		ptt_real.dlclose(handle);
	}
	/* the program sees us first, and may see nobody else */
	return ptt_lock_is_stub(found) ? NULL : found;
}

void *ptt_lock_found_beside(const void *function, const char *name)
{
	struct link_map *map = NULL;

	return ptt_linked_module(function, &map) && map ? find_in(map->l_name, name) : NULL;
}

struct name_of_module {
	unsigned int number;
	char path[512];
};

static int take_name(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct name_of_module *wanted = arg;

	(void)size;
	if (wanted->number--)
		return 0;
	strncpy(wanted->path, info->dlpi_name, sizeof(wanted->path) - 1);
	return 1;
}

/*
 * In any module. A function that ends with the call has left its place to the caller's: that of a constructor is the dynamic
 * linker, which sees nothing. Loads nothing while a module is looked at, which has a lock of the linker's.
 */
static void *find_anywhere(const char *name)
{
	void *found = NULL;
	unsigned int i;

	for (i = 0; !found; i++) {
		struct name_of_module module = {.number = i};

		if (!dl_iterate_phdr(take_name, &module))
			break;
		if (module.path[0])
			found = find_in(module.path, name);
	}
	return found;
}

/*
 * As the dynamic linker finds it for the module at @site: behind us among what all see, then among what that module sees alone.
 * A link map is no handle: that of a library which others brought along has no list of what to search.
 */
static COLD ptt_lock_fn *find(uint32_t number, const void *site)
{
	const char *name = ptt_lock_function(number)->name;
	void *found = ptt_dlsym(RTLD_NEXT, name);
	struct link_map *map = NULL;

	if (!found && ptt_linked_module(site, &map) && map)
		found = find_in(map->l_name, name);
	if (!found)
		found = find_anywhere(name);
	__asm__ volatile("" : "+r"(found)); /* no tail call: dlsym() looks at its caller */
	return *(ptt_lock_fn **)&found;
}

/* Functions of both tables have their places in one array. */
static inline uint32_t place_of(uint32_t number)
{
	return likely(number < PTT_LOCK_GIVEN) ? number : ptt_lock_count + number % PTT_LOCK_GIVEN;
}

static uint32_t places(void)
{
	uint32_t count = ptt_lock_count;

	for (const struct ptt_lock_function *f = __nptl_trace_locks; f && f->name; f++)
		count++;
	return count;
}

static struct ptt_lock_caller *caller_of(uintptr_t site)
{
	/* acquire: pairs with the release in add_caller() */
	uint32_t count = __atomic_load_n(&caller_count, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < count; i++)
		if (site - __atomic_load_n(&ptt_lock_callers[i].begin, __ATOMIC_ACQUIRE) < ptt_lock_callers[i].size)
			return &ptt_lock_callers[i];
	return NULL;
}

/* With `growing` taken. */
static struct ptt_lock_caller *add_caller(uintptr_t site)
{
	size_t size = places() * sizeof(ptt_lock_fn *);
	struct extent extent = {.inside = site};
	uint32_t place = 0;
	void *real;

	while (place < caller_count && ptt_lock_callers[place].begin != PTT_LOCK_CLOSED)
		place++;
	if (place == PTT_LOCK_CALLERS || !dl_iterate_phdr(find_extent, &extent))
		return NULL;
	real = ptt_lock_callers[place].real;
	if (!real) {
		real = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (real == MAP_FAILED)
			return NULL;
	}
	ptt_lock_callers[place].real = real;
	ptt_lock_callers[place].size = extent.end - extent.begin;
	/* release, both: pair with the acquires in caller_of() */
	__atomic_store_n(&ptt_lock_callers[place].begin, extent.begin, __ATOMIC_RELEASE);
	if (place == caller_count)
		__atomic_store_n(&caller_count, caller_count + 1, __ATOMIC_RELEASE);
	return &ptt_lock_callers[place];
}

static COLD ptt_lock_fn *look_up(uint32_t number, const void *site)
{
	ptt_lock_fn *found = find(number, site);
	struct ptt_lock_caller *caller;
	int before = errno;

	/* a thread that finds it taken looks up anew another time, as a signal handler does that interrupts the owner */
	if (ptt_real.pthread_mutex_trylock(&growing) == 0) {
		caller = caller_of((uintptr_t)site);
		if (!caller)
			caller = add_caller((uintptr_t)site);
		if (caller)
			/* relaxed: the word is all there is */
			__atomic_store_n(&caller->real[place_of(number)], found, __ATOMIC_RELAXED);
		ptt_real.pthread_mutex_unlock(&growing);
	}
	errno = before;
	return found;
}

/* Release: pairs with the acquire in ptt_lock_known(). */
static void keep_site(const struct ptt_lock_caller *caller, uintptr_t site)
{
	uint64_t place = (uint64_t)(caller - ptt_lock_callers);

	if (site >> PTT_LOCK_SITE_BITS == 0)
		__atomic_store_n(&ptt_lock_sites[site % PTT_LOCK_SITES], site | place << PTT_LOCK_SITE_BITS,
				 __ATOMIC_RELEASE);
}

ptt_lock_fn *ptt_real_lock(uint32_t number, const void *site)
{
	const struct ptt_lock_caller *caller;
	ptt_lock_fn *found;

	if (unlikely(number >= PTT_LOCK_ASKED))
		return ptt_asked_lock(number);
	found = ptt_lock_known(place_of(number), site);
	if (likely(found))
		return found;
	caller = caller_of((uintptr_t)site);
	if (caller)
		keep_site(caller, (uintptr_t)site);
	/* relaxed: the word is all there is */
	found = caller ? __atomic_load_n(&caller->real[place_of(number)], __ATOMIC_RELAXED) : NULL;
	return likely(found) ? found : look_up(number, site);
}

void ptt_forget_real_locks(void)
{
	uint32_t count = __atomic_load_n(&caller_count, __ATOMIC_ACQUIRE), all = places();

	ptt_forget_asked_locks();
	/* relaxed: as below */
	for (uint32_t i = 0; i < PTT_LOCK_SITES; i++)
		__atomic_store_n(&ptt_lock_sites[i], 0, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < count; i++) {
		struct extent extent = {.inside = ptt_lock_callers[i].begin};

		if (extent.inside == PTT_LOCK_CLOSED)
			continue;
		/* relaxed, both: no call comes from a closed module, and all else is looked up again */
		for (uint32_t place = 0; place < all; place++)
			__atomic_store_n(&ptt_lock_callers[i].real[place], NULL, __ATOMIC_RELAXED);
		if (!dl_iterate_phdr(find_extent, &extent))
			__atomic_store_n(&ptt_lock_callers[i].begin, PTT_LOCK_CLOSED, __ATOMIC_RELAXED);
	}
}
