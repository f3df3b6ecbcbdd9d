/* SPDX-License-Identifier: MIT */
/* rebind.c - changes the entries of imported functions in the tables of all modules. */
/*
 * A module calls functions of others by way of a table of addresses, one entry for each of them; the relocations of the
 * module say which. An entry is changed where it holds what is behind a hook, or, where the dynamic linker is to look for it
 * at the first call, the address in the module that leads there; what another library has put there stays. So the entries
 * say themselves what they were, and nothing has to be remembered.
 *
 * The dynamic linker changes entries too, and takes away the right to write to them, when it has loaded a module. It holds
 * its lock all that time, so this is done with the lock held: dlsym() takes it, and calls the resolver of an indirect
 * function with it.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "modules.h"
#include "rebind.h"

#if defined(__x86_64__)
#define JUMP_SLOT R_X86_64_JUMP_SLOT
#define GLOB_DAT R_X86_64_GLOB_DAT
#elif defined(__aarch64__)
#define JUMP_SLOT R_AARCH64_JUMP_SLOT
#define GLOB_DAT R_AARCH64_GLOB_DAT
#endif

#define PAGE 4096u
#define TABLE_SIZE 1024u /* a power of two, several times as many as there are hooks */
#define ROUTINES_MAX 400u

/* ------------------------------------------------------------ what leads where */

struct route {
	const char *name;
	uintptr_t hook;
	uintptr_t real;
	uintptr_t old; /* the older function of this name, which its hook is not for; or 0 */
};

static struct route routes[ROUTINES_MAX];
static uint32_t route_count;
static uint16_t by_name[TABLE_SIZE]; /* 1 + index */
static bool known;

/* These see to it that the tracer comes first in what every fork does; children of an attached process are not traced. */
static bool is_left_out(const char *name)
{
	return strcmp(name, "__register_atfork") == 0;
}

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

static const void *module_of(const void *address)
{
	Dl_info found;

	return dladdr(address, &found) ? found.dli_fbase : NULL;
}

static void add_route(void *self, const char *name, const void *real, const void *old)
{
	void *hook = dlsym(self, name);
	uint32_t at = hash_of(name);

	/* where another library stands before the C library, it is left there; and so are we, if we were preloaded */
	if (!hook || module_of(hook) != module_of(&ptt_real) || dlsym(RTLD_DEFAULT, name) != real || is_left_out(name) ||
	    route_count == ROUTINES_MAX)
		return;
	routes[route_count++] = (struct route){
		.name = name, .hook = (uintptr_t)hook, .real = (uintptr_t)real, .old = old == real ? 0 : (uintptr_t)old,
	};
	while (by_name[at % TABLE_SIZE])
		at++;
	by_name[at % TABLE_SIZE] = (uint16_t)route_count;
}

/* A hook is exported under several names where the C library has its function under them. */
static void find_routes(void)
{
	void *self = NULL;
	Dl_info about;

	if (known || !dladdr(&ptt_real, &about))
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
	known = true;
}

/* ------------------------------------------------------------ a module */

struct module {
	uintptr_t base;
	const ElfW(Sym) *symbols;
	const char *names;
	const ElfW(Versym) *versions;
	const ElfW(Verneed) *needed;
	const ElfW(Rela) *calls, *data;
	size_t calls_size, data_size;
	uintptr_t relro, relro_end; /* nobody may write there */
	uintptr_t begin, end;	    /* of the whole module */
};

/* What is to be done. The compiler does not know that dlsym() comes to what uses it. */
struct work {
	bool to_hooks, only_changed, was_changed;
	struct ptt_rebound *result;
};
static struct work *volatile work;
static uint64_t last_seen;

static const void *pointer(const struct module *m, ElfW(Addr) value)
{
	/* the dynamic linker makes most of them absolute, but not those of the vDSO */
	return (const void *)(value < m->base ? value + m->base : value);
}

static bool read_dynamic(const struct link_map *map, struct module *m)
{
	memset(m, 0, sizeof(*m));
	m->base = map->l_addr;
	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
		switch (d->d_tag) {
		case DT_SYMTAB:
			m->symbols = pointer(m, d->d_un.d_ptr);
			break;
		case DT_STRTAB:
			m->names = pointer(m, d->d_un.d_ptr);
			break;
		case DT_VERSYM:
			m->versions = pointer(m, d->d_un.d_ptr);
			break;
		case DT_VERNEED:
			m->needed = pointer(m, d->d_un.d_ptr);
			break;
		case DT_JMPREL:
			m->calls = pointer(m, d->d_un.d_ptr);
			break;
		case DT_PLTRELSZ:
			m->calls_size = d->d_un.d_val;
			break;
		case DT_RELA:
			m->data = pointer(m, d->d_un.d_ptr);
			break;
		case DT_RELASZ:
			m->data_size = d->d_un.d_val;
			break;
		case DT_PLTREL:
			if (d->d_un.d_val != DT_RELA)
				return false;
			break;
		}
	}
	return m->symbols && m->names;
}

static void read_segments(struct module *m, const ElfW(Phdr) *part, size_t count)
{
	m->begin = UINTPTR_MAX;
	for (size_t i = 0; i < count; i++, part++) {
		uintptr_t at = m->base + part->p_vaddr, end = at + part->p_memsz;

		if (part->p_type == PT_LOAD && at < m->begin)
			m->begin = at;
		if (part->p_type == PT_LOAD && end > m->end)
			m->end = end;
		if (part->p_type != PT_GNU_RELRO)
			continue;
		/* as the dynamic linker protects it */
		m->relro = at & ~(uintptr_t)(PAGE - 1);
		m->relro_end = end & ~(uintptr_t)(PAGE - 1);
	}
}

/* Past the list of modules, whose lock a fork of another thread would leave locked in the child. */
static bool find_segments(const struct link_map *map, struct module *m)
{
	struct dl_find_object found;
	const ElfW(Ehdr) *head;

	if (!map->l_prev) {
		read_segments(m, (const void *)getauxval(AT_PHDR), getauxval(AT_PHNUM));
		return m->end != 0;
	}
	if (ptt_find_object(map->l_ld, &found) != 0 || found.dlfo_link_map != map)
		return false;
	head = found.dlfo_map_start;
	if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_phentsize != sizeof(ElfW(Phdr)) ||
	    head->e_phoff + head->e_phnum * sizeof(ElfW(Phdr)) > PAGE)
		return false;
	read_segments(m, (const void *)((const char *)head + head->e_phoff), head->e_phnum);
	return m->end != 0;
}

/* The C library and the dynamic linker call their own functions past these tables, and are to be left alone; so are we. */
static bool is_left_alone(const struct link_map *map)
{
	const char *slash = strrchr(map->l_name, '/'), *name = slash ? slash + 1 : map->l_name;

	return strncmp(name, "libc.so", 7) == 0 || strncmp(name, "ld-linux", 8) == 0 ||
	       strncmp(name, "libpthread.so", 13) == 0 || strncmp(name, "linux-vdso", 10) == 0 ||
	       strstr(map->l_name, "/handlers/lib") || strncmp(name, "libposixtrace.so", 16) == 0 ||
	       (const void *)map->l_addr == module_of(&ptt_real);
}

/* ------------------------------------------------------------ entries */

/* The page of an entry that nobody may write to is open for so long as that takes. */
static bool store(const struct module *m, uintptr_t *entry, uintptr_t from, uintptr_t to)
{
	uintptr_t page = (uintptr_t)entry & ~(uintptr_t)(PAGE - 1);
	bool closed = (uintptr_t)entry >= m->relro && (uintptr_t)entry < m->relro_end;

	if (closed && mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE) < 0)
		return false;
	/* release: a caller through it sees a hook that is ready; a first call of another thread may just have filled it */
	__atomic_compare_exchange_n(entry, &from, to, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	if (closed)
		mprotect((void *)page, PAGE, PROT_READ);
	return true;
}

/* Of two functions of one name, does the module want the older? */
static bool wants_old(const struct module *m, size_t symbol)
{
	uint16_t version = m->versions ? m->versions[symbol] & 0x7fff : 0;
	const char *at = (const char *)m->needed;

	while (at && version > 1) {
		const ElfW(Verneed) *file = (const void *)at;
		const char *one = at + file->vn_aux;

		for (uint32_t i = 0; i < file->vn_cnt; i++) {
			const ElfW(Vernaux) *need = (const void *)one;

			if (need->vna_other == version)
				return strcmp(m->names + need->vna_name, PTT_OLD_VERSION) == 0;
			one += need->vna_next;
		}
		at = file->vn_next ? at + file->vn_next : NULL;
	}
	return true; /* none is the oldest to the dynamic linker */
}

static void change(const struct module *m, const struct route *route, size_t symbol, uintptr_t *entry)
{
	/* relaxed: it is compared with when it is changed */
	uintptr_t now = __atomic_load_n(entry, __ATOMIC_RELAXED), to = work->to_hooks ? route->hook : route->real;
	/* not looked up yet */
	bool unbound = now >= m->begin && now < m->end && !(route->old && wants_old(m, symbol));

	if (work->to_hooks ? now != route->real && !unbound : now != route->hook)
		return;
	if (store(m, entry, now, to))
		work->result->calls++;
	else
		work->result->refused++;
}

static void change_all(const struct module *m, const ElfW(Rela) *r, size_t size)
{
	for (const ElfW(Rela) *end = r + size / sizeof(*r); r && r < end; r++) {
		uint32_t type = (uint32_t)ELF64_R_TYPE(r->r_info);
		const ElfW(Sym) *symbol;
		const struct route *route;

		if (type != JUMP_SLOT && type != GLOB_DAT)
			continue;
		symbol = &m->symbols[ELF64_R_SYM(r->r_info)];
		if (symbol->st_shndx != SHN_UNDEF)
			continue; /* it has one of its own */
		route = route_of(m->names + symbol->st_name);
		if (route)
			change(m, route, ELF64_R_SYM(r->r_info), (uintptr_t *)(m->base + r->r_offset));
	}
}

static void change_module(const struct link_map *map)
{
	struct module m;

	if (is_left_alone(map) || !read_dynamic(map, &m) || !find_segments(map, &m))
		return;
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
	for (; first; first = first->l_next)
		change_module(first);
}

/* ------------------------------------------------------------ with the dynamic linker's lock held */

static void nothing(void)
{
}

/* The other callbacks that look for it change nothing. */
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
	if (!known || !dladdr(&ptt_real, &about))
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
