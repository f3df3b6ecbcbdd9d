/* SPDX-License-Identifier: MIT */
/* rebind.c - changes the entries of imported functions in the address tables (.got, .got.plt) of all modules. */
/*
 * A module calls functions of other modules through a table of addresses. Each function has an entry; relocations say
 * which. An entry is changed if it holds the real function behind a hook. It is also changed if it is not bound yet:
 * then it holds the address of the module's own stub, which makes the dynamic linker look up this entry. An address
 * that the program or another library stored there stays. So the entries themselves tell what they were, and the
 * tracer keeps no list.
 *
 * The program may have changed the protection of its modules. So only readable memory is read, and each page gets
 * back its earlier protection.
 *
 * The dynamic linker also changes entries while it loads a module, and then makes them read-only. It holds its lock
 * meanwhile. So this file works with that lock held: dlsym() takes the lock, and calls the resolver of an indirect
 * function (STT_GNU_IFUNC).
 */
#include <dlfcn.h>
#include <elf.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "handler.h"
#include "modules.h"
#include "platform/raw_syscall.h"
#include "reach.h"
#include "attach.h"

#if defined(__x86_64__)
#define JUMP_SLOT R_X86_64_JUMP_SLOT
#define GLOB_DAT R_X86_64_GLOB_DAT
#elif defined(__aarch64__)
#define JUMP_SLOT R_AARCH64_JUMP_SLOT
#define GLOB_DAT R_AARCH64_GLOB_DAT
#endif

#define PAGE 4096u
#define TABLE_SIZE 1024u /* a power of two, several times the number of hooks */
#define ROUTINES_MAX 400u

/* ------------------------------------------------------------ routes: from real functions to hooks */

struct route {
	const char *name;
	uintptr_t hook;
	uintptr_t real;
	uintptr_t old; /* the older function of this name, which the hook does not replace; or 0 */
};

static struct route routes[ROUTINES_MAX];
static uint32_t route_count;
static uint16_t by_name[TABLE_SIZE]; /* 1 + index */
static bool routes_found;

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (uint8_t)*name;
	return hash;
}

static const struct route *route_of(const char *name)
{
	uint32_t at = hash_of(name);

	for (;; at++) {
		uint16_t number = by_name[at % TABLE_SIZE];

		if (!number)
			return NULL;
		if (strcmp(routes[number - 1].name, name) == 0)
			return &routes[number - 1];
	}
}

static void add_route(void *self, const char *name, const void *real, const void *old)
{
	void *hook = dlsym(self, name);
	uint32_t at = hash_of(name);

	/*
	 * No route if another library stands before the C library, or if the tracer was preloaded: then the calls are
	 * right already. No route for __register_atfork(): its hook serves the tracing of children, and children of
	 * an attached process are not traced.
	 */
	if (!hook || ptt_module_base(hook) != ptt_module_base(&ptt_real) || dlsym(RTLD_DEFAULT, name) != real ||
	    strcmp(name, "__register_atfork") == 0 || route_count == ROUTINES_MAX)
		return;
	routes[route_count++] = (struct route){
		.name = name, .hook = (uintptr_t)hook, .real = (uintptr_t)real, .old = old == real ? 0 : (uintptr_t)old,
	};
	while (by_name[at % TABLE_SIZE])
		at++;
	by_name[at % TABLE_SIZE] = (uint16_t)route_count;
}

/* Some hooks have several names, as the functions of the C library have. */
static void find_routes(void)
{
	void *self = NULL;
	Dl_info about;

	if (routes_found || !dladdr(&ptt_real, &about))
		return;
	self = dlopen(about.dli_fname, RTLD_NOW | RTLD_NOLOAD);
	if (!self)
		return;
#define HOOK(type, name, params, args) add_route(self, #name, (const void *)ptt_real.name, NULL);
#define VERSIONED(type, name, version, params, args) add_route(self, #name, (const void *)ptt_real.name, (const void *)ptt_old.name);
#include "hooks.def"
#undef HOOK
#undef VERSIONED
	add_route(self, "__pthread_mutex_lock", (const void *)ptt_real.pthread_mutex_lock, NULL);
	add_route(self, "__pthread_mutex_unlock", (const void *)ptt_real.pthread_mutex_unlock, NULL);
	add_route(self, "__fork", (const void *)ptt_real.fork, NULL);
	add_route(self, "__clone", (const void *)ptt_real.clone, NULL);
	routes_found = true;
}

/* ------------------------------------------------------------ a module */

struct module {
	uintptr_t base;
	const ElfW(Sym) *symbols;
	const char *names;
	const ElfW(Versym) *versions;
	const ElfW(Verneed) *needed;
	const ElfW(Rela) *calls, *data;
	size_t names_size, calls_size, data_size;
	uintptr_t linker;     /* address of the word that stubs push to identify the module for the dynamic linker; or 0 */
	uintptr_t begin, end; /* of the whole module */
};

/* The work for rebind_locked(). volatile: the compiler does not know that dlsym() calls it. */
struct work {
	bool to_hooks, only_changed, was_changed, knows_protections;
	struct ptt_rebound *result;
};
static struct work *volatile work;
static uint64_t last_seen;

static bool can_read(const void *begin, size_t size)
{
	return work->knows_protections ? ptt_is_readable(begin, size) : ptt_can_read(begin, size);
}

static const void *pointer(const struct module *m, ElfW(Addr) value)
{
	/* the dynamic linker makes most of these addresses absolute, but not the addresses of the vDSO */
	return (const void *)(value < m->base ? value + m->base : value);
}

static bool read_dynamic(const struct link_map *map, struct module *m)
{
	memset(m, 0, sizeof(*m));
	m->base = map->l_addr;
	for (const ElfW(Dyn) *d = map->l_ld; can_read(d, sizeof(*d)) && d->d_tag != DT_NULL; d++) {
		switch (d->d_tag) {
		case DT_SYMTAB: m->symbols = pointer(m, d->d_un.d_ptr); break;
		case DT_STRTAB: m->names = pointer(m, d->d_un.d_ptr); break;
		case DT_STRSZ: m->names_size = d->d_un.d_val; break;
		case DT_PLTGOT: m->linker = (uintptr_t)pointer(m, d->d_un.d_ptr) + sizeof(void *); break;
		case DT_VERSYM: m->versions = pointer(m, d->d_un.d_ptr); break;
		case DT_VERNEED: m->needed = pointer(m, d->d_un.d_ptr); break;
		case DT_JMPREL: m->calls = pointer(m, d->d_un.d_ptr); break;
		case DT_PLTRELSZ: m->calls_size = d->d_un.d_val; break;
		case DT_RELA: m->data = pointer(m, d->d_un.d_ptr); break;
		case DT_RELASZ: m->data_size = d->d_un.d_val; break;
		case DT_PLTREL:
			if (d->d_un.d_val != DT_RELA)
				return false;
			break;
		}
	}
	return m->symbols && m->names && can_read(m->names, m->names_size) && can_read(m->calls, m->calls_size) &&
	       can_read(m->data, m->data_size);
}

/* Not by dl_iterate_phdr(): if another thread forked meanwhile, its lock would stay locked in the child. */
static bool find_extent(const struct link_map *map, struct module *m)
{
	struct dl_find_object object;

	if (ptt_find_object(map->l_ld, &object) != 0 || object.dlfo_link_map != map)
		return false;
	ptt_module_extent(&object, &m->begin, &m->end);
	return true;
}

/*
 * Do not change the C library and the dynamic linker, which call their own functions past these tables; nor the
 * tracer and the handler.
 */
static bool is_left_alone(const struct link_map *map)
{
	const char *slash = strrchr(map->l_name, '/'), *name = slash ? slash + 1 : map->l_name;
	const void *const ours[] = {
		(const void *)gnu_get_libc_version, &ptt_real, (const void *)ptt_handler_address(),
	};

	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		if (ours[i] && (const void *)map->l_addr == ptt_module_base(ours[i]))
			return true;
	return map->l_addr == _r_debug.r_ldbase || strncmp(name, "linux-vdso", 10) == 0 ||
	       strncmp(name, "libposixtrace.so", 16) == 0;
}

/* ------------------------------------------------------------ entries */

/* May this thread write to the entry? FUTEX_WAKE_OP with an operation that changes nothing: the kernel tells. */
static bool may_write(const uintptr_t *entry)
{
	uint32_t none = 0;

	return ptt_raw_syscall(SYS_futex, (long)&none, FUTEX_WAKE_OP_PRIVATE, 0, 0, (long)entry,
			       FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0)) >= 0;
}

/* Store into an entry. A read-only page is writable for that moment. Return: false if the page cannot be written to. */
static bool store(uintptr_t *entry, uintptr_t from, uintptr_t to)
{
	uintptr_t page = (uintptr_t)entry & ~(uintptr_t)(PAGE - 1);
	int before = work->knows_protections ? ptt_protection_of(page) : PROT_READ;
	bool closed = !may_write(entry), open = !closed;

	if (closed && before >= 0 && mprotect((void *)page, PAGE, before | PROT_READ | PROT_WRITE) == 0)
		open = may_write(entry);
	/*
	 * release: a caller through the entry sees a ready hook. Exchange: another thread's first call may bind the
	 * entry meanwhile.
	 */
	if (open)
		__atomic_compare_exchange_n(entry, &from, to, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	if (closed && before >= 0)
		mprotect((void *)page, PAGE, before);
	return open;
}

/* Does the module need the older of two functions with the same name? */
static bool wants_old(const struct module *m, size_t symbol)
{
	bool has_version = m->versions && can_read(&m->versions[symbol], sizeof(*m->versions));
	uint16_t version = has_version ? m->versions[symbol] & 0x7fff : 0;
	const char *at = (const char *)m->needed;

	while (at && version > 1 && can_read(at, sizeof(ElfW(Verneed)))) {
		const ElfW(Verneed) *file = (const void *)at;
		const char *aux = at + file->vn_aux;

		for (uint32_t i = 0; i < file->vn_cnt && can_read(aux, sizeof(ElfW(Vernaux))); i++) {
			const ElfW(Vernaux) *need = (const void *)aux;

			if (need->vna_other == version)
				return strcmp(m->names + need->vna_name, PTT_OLD_VERSION) == 0;
			aux += need->vna_next;
		}
		at = file->vn_next ? at + file->vn_next : NULL;
	}
	return true; /* without a version, the dynamic linker takes the oldest function */
}

#define STUB_SIZE 16u

/*
 * Is @code the module's stub that makes the dynamic linker look up entry @number? Such a stub pushes the number. If
 * the number is in a register, the stub pushes the word that identifies the module.
 */
static bool asks_for(const struct module *m, uintptr_t code, size_t number)
{
#if defined(__x86_64__)
	const uint8_t *at = (const uint8_t *)code;
	uint32_t pushed;

	if (code < m->begin || code >= m->end || m->end - code < STUB_SIZE || !can_read(at, STUB_SIZE))
		return false;
	if (memcmp(at, "\xf3\x0f\x1e\xfa", 4) == 0) /* endbr64 */
		at += 4;
	memcpy(&pushed, at + 1, sizeof(pushed));
	if (at[0] == 0x68) /* push $… */
		return pushed == number;
	if (at[0] == 0x41 && at[1] == 0x53) /* push %r11 */
		at += 2;
	memcpy(&pushed, at + 2, sizeof(pushed));
	return m->linker && at[0] == 0xff && at[1] == 0x35 && (uintptr_t)at + 6 + (uintptr_t)(intptr_t)(int32_t)pushed == m->linker;
#else
	(void)number;
	return code >= m->begin && code < m->end;
#endif
}

#define NO_CALL SIZE_MAX

/* @number: the number of the entry among the entries of calls; NO_CALL: another entry, which is always bound */
static void change(const struct module *m, const struct route *route, size_t symbol, uintptr_t *entry, size_t number)
{
	uintptr_t now, to = work->to_hooks ? route->hook : route->real;

	if (!can_read(entry, sizeof(*entry)))
		return;
	/* relaxed: store() compares it again */
	now = __atomic_load_n(entry, __ATOMIC_RELAXED);
	if (now != (work->to_hooks ? route->real : route->hook) &&
	    !(work->to_hooks && number != NO_CALL && asks_for(m, now, number) && !(route->old && wants_old(m, symbol))))
		return;
	if (store(entry, now, to))
		work->result->calls++;
	else
		work->result->refused++;
}

static void change_all(const struct module *m, const ElfW(Rela) *first, size_t size)
{
	const ElfW(Rela) *end = first + size / sizeof(*first);

	for (const ElfW(Rela) *r = first; r && r < end; r++) {
		uint32_t type = (uint32_t)ELF64_R_TYPE(r->r_info);
		const ElfW(Sym) *symbol;
		const struct route *route;

		if (type != JUMP_SLOT && type != GLOB_DAT)
			continue;
		symbol = &m->symbols[ELF64_R_SYM(r->r_info)];
		if (!can_read(symbol, sizeof(*symbol)) || symbol->st_name >= m->names_size)
			continue;
		if (symbol->st_shndx != SHN_UNDEF)
			continue; /* the module defines the function itself */
		route = route_of(m->names + symbol->st_name);
		if (route)
			change(m, route, ELF64_R_SYM(r->r_info), (uintptr_t *)(m->base + r->r_offset),
			       type == JUMP_SLOT ? (size_t)(r - m->calls) : NO_CALL);
	}
}

static void change_module(const struct link_map *map)
{
	struct module m;

	if (is_left_alone(map))
		return;
	if (!read_dynamic(map, &m) || !find_extent(map, &m)) {
		work->result->refused++;
		return;
	}
	work->result->modules++;
	change_all(&m, m.calls, m.calls_size);
	change_all(&m, m.data, m.data_size);
}

static const struct link_map *first_module(void)
{
	struct link_map *map = NULL;
	Dl_info about;

	if (!dladdr1(&ptt_real, &about, (void **)&map, RTLD_DL_LINKMAP))
		return NULL;
	while (map && map->l_prev)
		map = map->l_prev;
	return map;
}

static uint64_t seen_now(const struct link_map *map)
{
	uint64_t seen = 0;

	for (; map; map = map->l_next)
		seen = (seen ^ (uintptr_t)map ^ map->l_addr) * UINT64_C(0x100000001b3);
	return seen;
}

static void rebind_locked(void)
{
	const struct link_map *first = first_module();
	uint64_t seen = seen_now(first);

	work->was_changed = seen != last_seen;
	last_seen = seen;
	if (work->only_changed && !work->was_changed)
		return;
	work->knows_protections = ptt_protections_read();
	for (; first; first = first->l_next)
		change_module(first);
	ptt_protections_forget();
}

/* ------------------------------------------------------------ with the dynamic linker's lock held */

static void nothing(void)
{
}

/* The resolver of the indirect function. Other look-ups of the function do nothing. */
static __attribute__((used)) UNWATCHED void (*resolve_nothing(void))(void)
{
	if (work)
		rebind_locked();
	return nothing;
}

EXPORT void __nptl_trace_with_linker_lock(void) __attribute__((ifunc("resolve_nothing")));

bool ptt_rebind(bool hooked, bool changed, struct ptt_rebound *done)
{
	struct work wanted = {.to_hooks = hooked, .only_changed = changed, .result = done};
	Dl_info about;
	void *self;

	memset(done, 0, sizeof(*done));
	find_routes();
	if (!routes_found || !dladdr(&ptt_real, &about))
		return false;
	self = dlopen(about.dli_fname, RTLD_NOW | RTLD_NOLOAD);
	if (!self)
		return false;
	work = &wanted;
	dlsym(self, "__nptl_trace_with_linker_lock");
	work = NULL;
	dlclose(self);
	return wanted.was_changed || !changed;
}
