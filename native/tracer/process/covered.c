/* SPDX-License-Identifier: MIT */
/* covered.c - finds modules with thread calls that bypass the tracer, and the reason, when the module is closed or the process ends. */
/*
 * A module that was opened with RTLD_DEEPBIND has its calls bound to the C library, not to the tracer. The entries of
 * its relocations show it. A module that was linked with -Bsymbolic and defines functions with these names calls its
 * own functions. It has no relocations for them, but a flag and the definitions. A module that dlmopen() loaded into
 * another namespace calls the C library of that namespace, which has no tracer.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "handler.h"
#include "platform/own_process.h"
#include "process.h"
#include "real_lock.h"
#include "writer/identity.h"

#define TEXT_MAX 8192

/* Only functions of threads count; functions that make processes are no loss. */
static bool is_of_threads(const char *name)
{
	static const char *const families[] = {"pthread_", "sem_", "mtx_", "cnd_", "thrd_"};
	size_t i;

	for (i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (strncmp(name, families[i], strlen(families[i])) == 0)
			return true;
	return false;
}

#define HOOK(type, name, params, args) #name,
#define VERSIONED(type, name, version, params, args) #name,
static const char *const hooked[] = {
#include "hooks.def"
};
#undef HOOK
#undef VERSIONED

static bool is_hooked(const char *name)
{
	size_t i;

	for (i = 0; is_of_threads(name) && i < sizeof(hooked) / sizeof(hooked[0]); i++)
		if (strcmp(name, hooked[i]) == 0)
			return true;
	return false;
}

/* A module, by its dynamic section. */
struct module {
	uintptr_t base;
	const char *strings;
	const ElfW(Sym) *symbols;
	struct {
		const ElfW(Rela) *first;
		size_t size;
	} relocations[2]; /* of calls, of all others */
	const uint32_t *gnu_hash;
	bool symbolic;
};

struct search {
	uintptr_t begin, end; /* of the C library */
	char text[TEXT_MAX];  /* lines to write */
	size_t size;
};

/* Used only under the lock of dl_iterate_phdr(). */
static struct search search;

/* On most processors, the dynamic linker has added the base to these addresses. */
static const void *address_of(const struct module *m, ElfW(Addr) value)
{
	return (const void *)(value < m->base ? m->base + value : value);
}

static const ElfW(Dyn) *dynamic_of(const struct dl_phdr_info *info)
{
	int i;

	for (i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			return (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	return NULL;
}

static bool read_dynamic(uintptr_t base, const ElfW(Dyn) *entry, struct module *m)
{
	*m = (struct module){.base = base};
	for (; entry && entry->d_tag != DT_NULL; entry++) {
		switch (entry->d_tag) {
		case DT_STRTAB: m->strings = address_of(m, entry->d_un.d_ptr); break;
		case DT_SYMTAB: m->symbols = address_of(m, entry->d_un.d_ptr); break;
		case DT_JMPREL: m->relocations[0].first = address_of(m, entry->d_un.d_ptr); break;
		case DT_PLTRELSZ: m->relocations[0].size = entry->d_un.d_val; break;
		case DT_RELA: m->relocations[1].first = address_of(m, entry->d_un.d_ptr); break;
		case DT_RELASZ: m->relocations[1].size = entry->d_un.d_val; break;
		case DT_GNU_HASH: m->gnu_hash = address_of(m, entry->d_un.d_ptr); break;
		case DT_SYMBOLIC: m->symbolic = true; break;
		case DT_FLAGS: m->symbolic = m->symbolic || (entry->d_un.d_val & DF_SYMBOLIC); break;
		}
	}
	return m->strings && m->symbols;
}

#define FOR_EACH_RELOCATION(m, rela)                                                                   \
	for (unsigned int table_ = 0; table_ < 2; table_++)                                            \
		for (const ElfW(Rela) *rela = (m)->relocations[table_].first,                          \
				      *last_ = rela + (m)->relocations[table_].size / sizeof(*rela);   \
		     rela && rela < last_; rela++)

/* The first hooked function that is bound to an address from @begin to @end, or NULL. */
static const char *bound_between(const struct module *m, uintptr_t begin, uintptr_t end)
{
	FOR_EACH_RELOCATION(m, rela) {
		uint32_t symbol = (uint32_t)(rela->r_info >> 32);
		const char *name;

		if (!symbol)
			continue;
		name = m->strings + m->symbols[symbol].st_name;
		if (is_hooked(name) && *(const uintptr_t *)(m->base + rela->r_offset) - begin < end - begin)
			return name;
	}
	return NULL;
}

/* The first hooked function that the module defines itself, or NULL. The hash table lists the defined symbols. */
static const char *own_definition(const struct module *m)
{
	uint32_t buckets, first, i, symbol;
	const uint32_t *bucket, *chain;

	if (!m->gnu_hash)
		return NULL;
	buckets = m->gnu_hash[0];
	first = m->gnu_hash[1];
	bucket = m->gnu_hash + 4 + m->gnu_hash[2] * (sizeof(ElfW(Addr)) / 4);
	chain = bucket + buckets;
	for (i = 0; i < buckets; i++)
		for (symbol = bucket[i]; symbol >= first && symbol; symbol++) {
			const char *name = m->strings + m->symbols[symbol].st_name;

			if (m->symbols[symbol].st_shndx != SHN_UNDEF && is_hooked(name))
				return name;
			if (chain[symbol - first] & 1)
				break;
		}
	return NULL;
}

static __attribute__((format(printf, 2, 3))) void add_line(struct search *s, const char *format, ...)
{
	va_list values;
	int n;

	va_start(values, format);
	n = vsnprintf(s->text + s->size, TEXT_MAX - s->size, format, values);
	va_end(values);
	if (n > 0 && (size_t)n < TEXT_MAX - s->size)
		s->size += (size_t)n;
}

static void note(struct search *s, const char *module, const char *name, const char *why)
{
	if (!memmem(s->text, s->size, module, strlen(module)))
		add_line(s, "%s\t%s %s\n", module, name, why);
}

/* Does the module import a function? @length: of the name's prefix; with its final zero, of the whole name */
static bool imports(const struct module *m, const char *prefix, size_t length)
{
	FOR_EACH_RELOCATION(m, rela) {
		uint32_t index = (uint32_t)(rela->r_info >> 32);
		const ElfW(Sym) *symbol = &m->symbols[index];

		/* most relocations of a large library have no symbol */
		if (index && symbol->st_shndx == SHN_UNDEF && strncmp(m->strings + symbol->st_name, prefix, length) == 0)
			return true;
	}
	return false;
}

#define IMPORTS(m, name) imports(m, name, sizeof(name))
#define IMPORTS_PREFIX(m, name) imports(m, name, sizeof(name) - 1)

/*
 * The function that locks inside the module may call to wait for futexes, or NULL. Locks of Rust and of C++20 are
 * compiled into a module, and call syscall() to wait. Tables of Rust's panics, or C++'s std::system_error, tell such
 * a module from others that make system calls. LuaJIT also unwinds, but without these tables. Only the module's code
 * tells which system call it makes; the recorder reads that code. From GCC 16 on the wait itself lies in libstdc++.
 */
static const char *futexes_of(const struct module *m)
{
	if (IMPORTS_PREFIX(m, "_ZNSt8__detail11__wait_impl") || IMPORTS_PREFIX(m, "_ZNSt8__detail17__wait_until_impl"))
		return "futex";
	if (IMPORTS(m, "syscall") &&
	    (IMPORTS(m, "_ZSt20__throw_system_errori") || IMPORTS(m, "_Unwind_GetLanguageSpecificData")))
		return "syscall";
	return NULL;
}

static void look_at(struct search *s, const char *path, uintptr_t base, const ElfW(Dyn) *dynamic)
{
	struct module m;
	const char *name;

	if (!path || !path[0] || !read_dynamic(base, dynamic, &m))
		return;
	name = bound_between(&m, s->begin, s->end);
	if (name)
		note(s, path, name, "is bound to the C library (opened with RTLD_DEEPBIND?)");
	else if (m.symbolic && (name = own_definition(&m)))
		note(s, path, name, "is its own (linked with -Bsymbolic)");
}

/* ------------------------------------------------------------ namespaces */

/* struct r_debug_extended of <link.h>: a list of modules for each namespace. The first namespace is the program's. */
struct namespace {
	struct r_debug list;
	struct namespace *next; /* since glibc 2.35, where r_version is 2 if there are several namespaces */
};

/* A module of another namespace: its functions are never bound to the tracer. */
static void look_at_foreign(struct search *s, const struct link_map *map)
{
	struct module m;
	const char *name;

	if (!map->l_name || !map->l_name[0] || !read_dynamic(map->l_addr, map->l_ld, &m))
		return;
	name = bound_between(&m, 0, UINTPTR_MAX);
	if (name)
		note(s, map->l_name, name, "belongs to another namespace (opened with dlmopen)");
}

/*
 * A callback of dl_iterate_phdr() only for its lock: under the lock the lists do not change.
 * @wanted: a module, or NULL for all modules
 */
static int look_at_namespaces(struct dl_phdr_info *info, size_t size, void *wanted)
{
	const struct namespace *space = (const struct namespace *)&_r_debug;
	const struct link_map *map;

	(void)info;
	(void)size;
	while (_r_debug.r_version >= 2 && (space = space->next))
		for (map = space->list.r_map; map; map = map->l_next)
			if (!wanted || map == wanted)
				look_at_foreign(&search, map);
	return 1;
}

/* ------------------------------------------------------------ the program's own namespace */

static int find_library(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t begin, end;

	(void)size;
	(void)arg;
	if (!search.end && ptt_module_range(info, (uintptr_t)ptt_real.call_once, &begin, &end)) {
		search.begin = begin;
		search.end = end;
	}
	return search.end != 0;
}

/* @program: the path of the program, which has no path in the dynamic linker's list */
static int look_at_each(struct dl_phdr_info *info, size_t size, void *program)
{
	const char *path = info->dlpi_name && info->dlpi_name[0] ? info->dlpi_name : program;
	const char *futexes;
	uintptr_t begin, end;
	struct module m;

	(void)size;
	if (info->dlpi_addr == search.begin || ptt_module_range(info, (uintptr_t)&ptt_real, &begin, &end))
		return 0;
	look_at(&search, info->dlpi_name, info->dlpi_addr, dynamic_of(info));
	if (!read_dynamic(info->dlpi_addr, dynamic_of(info), &m))
		return 0;
	futexes = futexes_of(&m);
	if (futexes && !strstr(path, "/libstdc++.so") && !strstr(path, "/libc++"))
		add_line(&search, "\t%s\t%s\n", futexes, path);
	return 0;
}

/*
 * The tracer's entry in the dynamic linker's list; modules that are opened later follow it. Do not call this inside
 * dl_iterate_phdr(): dladdr1() takes the lock that dlopen() holds while it waits for the lock of dl_iterate_phdr().
 */
static const struct link_map *own_entry(void)
{
	static const struct link_map *known;
	/* relaxed: a thread that does not see it finds the same entry */
	struct link_map *entry = (struct link_map *)__atomic_load_n(&known, __ATOMIC_RELAXED);
	Dl_info self;

	if (!entry && dladdr1(&ptt_real, &self, (void **)&entry, RTLD_DL_LINKMAP))
		__atomic_store_n(&known, entry, __ATOMIC_RELAXED);
	return entry;
}

struct looked_for {
	const struct link_map *first;
	const void *library;
};

/*
 * A handle is the address of the library's entry in the list, and may be invalid, so look for it there. A callback of
 * dl_iterate_phdr() only for its lock: under the lock the list does not change.
 */
static int look_at_library(struct dl_phdr_info *info, size_t size, void *arg)
{
	const struct looked_for *wanted = arg;
	const struct link_map *map = wanted->first;

	(void)info;
	(void)size;
	while (map && map != wanted->library)
		map = map->l_next;
	if (map)
		look_at(&search, map->l_name, map->l_addr, map->l_ld);
	return 1;
}

static void look_before_close(const void *library)
{
	struct looked_for wanted = {.first = own_entry(), .library = library};

	if (dl_iterate_phdr(find_library, NULL))
		dl_iterate_phdr(look_at_library, &wanted);
	dl_iterate_phdr(look_at_namespaces, (void *)library);
}

EXPORT int dlclose(void *library)
{
	int result;

	if (__nptl_trace_enabled && !__nptl_trace_confined)
		look_before_close(library);
	ptt_begin_closing();
	result = ptt_real.dlclose(library);
	ptt_end_closing(library);
	ptt_forget_real_locks();
	return result;
}

/* Only one thread is here, at the end of the process. */
static void write_list(const char *path)
{
	static char program[PATH_MAX];
	int fd;

	if (!dl_iterate_phdr(find_library, NULL) || readlink("/proc/self/exe", program, sizeof(program) - 1) < 0)
		return;
	dl_iterate_phdr(look_at_each, program);
	dl_iterate_phdr(look_at_namespaces, NULL);
	if (!search.size || !ptt_may_write(search.size))
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (fd < 0)
		return;
	if (write(fd, search.text, search.size) != (ssize_t)search.size)
		unlink(path);
	close(fd);
}

void ptt_report_uncovered(void)
{
	static char directory[PATH_MAX], path[PATH_MAX + 32];

	if (!ptt_tracing_option("control", directory, sizeof(directory)))
		return;
	snprintf(path, sizeof(path), "%s/uncovered-%u-%d", directory, ptt_pid_namespace(PTT_OWN_PID_NAMESPACE),
		 (int)ptt_pid);
	write_list(path);
}
