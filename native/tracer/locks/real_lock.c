/* SPDX-License-Identifier: MIT */
/* real_lock.c - finds the real functions behind the stubs, for each calling module. */
/*
 * Two modules of a process may use two versions of a library, so the real function depends on the calling module. The
 * few calling modules are in a list that grows at its end; readers take no lock.
 */
#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "real_lock.h"

struct ptt_lock_caller ptt_lock_callers[PTT_LOCK_CALLERS];
uint64_t ptt_lock_sites[PTT_LOCK_SITES];
static uint32_t caller_count; /* release in add_caller() pairs with the acquires of readers */
static pthread_mutex_t growing = PTHREAD_MUTEX_INITIALIZER;

/* ------------------------------------------------------------ modules */

/* UNWATCHED: for covered.c, see CMakeLists.txt. */
UNWATCHED bool ptt_module_range(const struct dl_phdr_info *info, uintptr_t inside, uintptr_t *begin, uintptr_t *end)
{
	bool is_inside = false;

	*begin = UINTPTR_MAX;
	*end = 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + part->p_vaddr;

		if (part->p_type != PT_LOAD)
			continue;
		*begin = at < *begin ? at : *begin;
		*end = at + part->p_memsz > *end ? at + part->p_memsz : *end;
		is_inside = is_inside || inside - at < part->p_memsz;
	}
	return is_inside;
}

struct extent {
	uintptr_t inside, begin, end;
};

static int find_extent(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct extent *extent = arg;

	(void)size;
	return ptt_module_range(info, extent->inside, &extent->begin, &extent->end);
}

/* ------------------------------------------------------------ functions */

/* Look in a loaded module and in its dependencies. */
static void *find_in(const char *path, const char *name)
{
	void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD), *function = NULL;

	if (handle) {
		function = ptt_dlsym(handle, name);
		ptt_real.dlclose(handle);
	}
	/* in the program, the tracer's stub comes first */
	return ptt_lock_is_stub(function) ? NULL : function;
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
 * Look in all modules. After a tail call the call site lies in the caller's caller, and for a constructor that is the
 * dynamic linker. take_name() runs under a lock of the dynamic linker, so find_in() is called outside.
 */
static void *find_anywhere(const char *name)
{
	void *function = NULL;
	unsigned int i;

	for (i = 0; !function; i++) {
		struct name_of_module module = {.number = i};

		if (!dl_iterate_phdr(take_name, &module))
			break;
		if (module.path[0])
			function = find_in(module.path, name);
	}
	return function;
}

/*
 * Look as the dynamic linker does for the module at @site: first behind the tracer in the global scope, then in the
 * local scope of the module. The link map cannot serve as a handle: the link map of a dependency has no search list.
 */
static COLD ptt_lock_fn *find(uint32_t number, const void *site)
{
	const char *name = ptt_lock_function(number)->name;
	void *function = ptt_dlsym(RTLD_NEXT, name);
	struct link_map *map = NULL;

	if (!function && ptt_linked_module(site, &map) && map)
		function = find_in(map->l_name, name);
	if (!function)
		function = find_anywhere(name);
	__asm__ volatile("" : "+r"(function)); /* no tail call: dlsym() depends on its caller */
	return *(ptt_lock_fn **)&function;
}

/* The index of a function in ptt_lock_caller.real: first the catalogue's functions, then the user's. */
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

/* The caller of this function holds `growing`. */
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
	ptt_lock_fn *function = find(number, site);
	struct ptt_lock_caller *caller;
	int before = errno;

	/* if another thread holds the mutex, or a signal handler interrupted its holder: look up again next time */
	if (ptt_real.pthread_mutex_trylock(&growing) == 0) {
		caller = caller_of((uintptr_t)site);
		if (!caller)
			caller = add_caller((uintptr_t)site);
		if (caller)
			/* relaxed: no other data depends on the address */
			__atomic_store_n(&caller->real[place_of(number)], function, __ATOMIC_RELAXED);
		ptt_real.pthread_mutex_unlock(&growing);
	}
	errno = before;
	return function;
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
	ptt_lock_fn *function;

	if (unlikely(number >= PTT_LOCK_ASKED))
		return ptt_asked_lock(number);
	function = ptt_lock_known(place_of(number), site);
	if (likely(function))
		return function;
	caller = caller_of((uintptr_t)site);
	if (caller)
		keep_site(caller, (uintptr_t)site);
	/* relaxed: no other data depends on the address */
	function = caller ? __atomic_load_n(&caller->real[place_of(number)], __ATOMIC_RELAXED) : NULL;
	return likely(function) ? function : look_up(number, site);
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
		/* relaxed, both: no call comes from a closed module, and all other functions are looked up again */
		for (uint32_t place = 0; place < all; place++)
			__atomic_store_n(&ptt_lock_callers[i].real[place], NULL, __ATOMIC_RELAXED);
		if (!dl_iterate_phdr(find_extent, &extent))
			__atomic_store_n(&ptt_lock_callers[i].begin, PTT_LOCK_CLOSED, __ATOMIC_RELAXED);
	}
}
