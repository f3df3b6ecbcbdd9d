/* SPDX-License-Identifier: MIT */
/* modules.c - tells apart modules that are loaded at the same address, one after the other. */
/*
 * The address and the build-id identify a module; the program headers replace a missing build-id. All caches by
 * address, here and in handlers, are emptied when a module is closed. The first event after that looks the module up
 * here. Each different module has one entry, however often it is loaded.
 */
#include <elf.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "platform/confined.h"
#include "modules.h"
#include "nptl_trace.h"
#include "platform/raw_syscall.h"
#include "reach.h"
#include "rules.h"
#include "wrappers.h"

#define TABLE_BITS 15
#define TABLE_SIZE (1u << TABLE_BITS)
#define BUILD_ID_MAX 64u

uint64_t ptt_closing_count;
static __thread uint32_t own_closing INITIAL_EXEC;

static struct ptt_module *table[TABLE_SIZE];
static struct ptt_module *all;

/* ------------------------------------------------------------ headers of modules */

struct build_id {
	const uint8_t *at;
	size_t size;
};

static uint64_t mix(uint64_t hash, const void *data, size_t size)
{
	const uint8_t *at = data;

	for (; size; size--)
		hash = (hash ^ *at++) * UINT64_C(0x100000001b3);
	return hash;
}

/* A module as the dynamic linker knows it, and its program headers; count is 0 if they are unknown. */
struct extent {
	uintptr_t begin, end;
	const Elf64_Phdr *headers;
	size_t count;
};

/*
 * The kernel maps the program itself, maybe with gaps between the segments. Then the dynamic linker returns only one
 * segment, and the kernel says where the headers are (getauxval(3), AT_PHDR).
 */
static struct extent extent_of_program(const struct dl_find_object *object)
{
	struct extent whole = {(uintptr_t)object->dlfo_map_start, (uintptr_t)object->dlfo_map_end, NULL, 0};
	uintptr_t base = object->dlfo_link_map->l_addr, begin, end;
	size_t count = getauxval(AT_PHNUM), i;
	const Elf64_Phdr *p = (const void *)getauxval(AT_PHDR);

	if (!p || object->dlfo_link_map->l_prev || !ptt_can_read(p, count * sizeof(*p)))
		return whole;
	for (i = 0; i < count; i++) {
		begin = base + (p[i].p_vaddr & ~(uintptr_t)4095);
		end = base + p[i].p_vaddr + p[i].p_memsz;
		if (p[i].p_type == PT_LOAD && begin < whole.begin)
			whole.begin = begin;
		if (p[i].p_type == PT_LOAD && end > whole.end)
			whole.end = end;
	}
	whole.headers = p;
	whole.count = count;
	return whole;
}

/* Of other modules, only headers in the first page, which is mapped as a whole. The program may have unmapped that page. */
static struct extent extent_of(const struct dl_find_object *object)
{
	const Elf64_Ehdr *head = object->dlfo_map_start;
	struct extent whole = {(uintptr_t)head, (uintptr_t)object->dlfo_map_end, NULL, 0};

	if (!ptt_can_read(head, sizeof(*head)) || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0)
		return extent_of_program(object);
	if (head->e_phentsize == sizeof(Elf64_Phdr) && head->e_phoff % 8 == 0 &&
	    head->e_phoff + head->e_phnum * sizeof(Elf64_Phdr) <= 4096) {
		whole.headers = (const Elf64_Phdr *)((const char *)head + head->e_phoff);
		whole.count = head->e_phnum;
	}
	return whole;
}

void ptt_module_extent(const struct dl_find_object *object, uintptr_t *begin, uintptr_t *end)
{
	struct extent whole = extent_of(object);

	*begin = whole.begin;
	*end = whole.end;
}

static bool find_build_id(const char *notes, size_t size, struct build_id *id)
{
	while (size >= sizeof(Elf64_Nhdr)) {
		const Elf64_Nhdr *note = (const void *)notes;
		size_t name = (note->n_namesz + 3u) & ~3u, whole = sizeof(*note) + name + ((note->n_descsz + 3u) & ~3u);

		if (whole > size)
			return false;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && note->n_descsz <= BUILD_ID_MAX &&
		    memcmp(note + 1, ELF_NOTE_GNU, 4) == 0) {
			*id = (struct build_id){.at = (const uint8_t *)(note + 1) + name, .size = note->n_descsz};
			return true;
		}
		notes += whole;
		size -= whole;
	}
	return false;
}

static struct build_id build_id_of(const struct extent *whole, uintptr_t base)
{
	struct build_id id = {0};

	for (size_t i = 0; i < whole->count; i++) {
		const Elf64_Phdr *p = &whole->headers[i];
		uintptr_t at = base + p->p_vaddr;

		if (p->p_type == PT_NOTE && at >= whole->begin && at < whole->end && p->p_filesz <= whole->end - at &&
		    ptt_can_read((const void *)at, p->p_filesz) && find_build_id((const char *)at, p->p_filesz, &id))
			break;
	}
	return id;
}

static uint64_t identity_of(const struct extent *whole, const char *path, const struct build_id *id)
{
	uint64_t hash = mix(UINT64_C(0xcbf29ce484222325), &whole->end, sizeof(whole->end));

	if (id->size)
		return mix(hash, id->at, id->size);
	hash = mix(hash, whole->headers, whole->count * sizeof(*whole->headers));
	return mix(hash, path, strlen(path));
}

/* ------------------------------------------------------------ entries */

/* The entry; or NULL, and in @place the empty place for it, or TABLE_SIZE if the table is full. */
static struct ptt_module *find(uintptr_t begin, uint64_t identity, uint32_t *place)
{
	uint32_t at = (uint32_t)((begin ^ identity) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - TABLE_BITS)), i;

	for (i = 0; i < TABLE_SIZE; i++, at = (at + 1) % TABLE_SIZE) {
		/* acquire: pairs with the release of add() */
		struct ptt_module *m = __atomic_load_n(&table[at], __ATOMIC_ACQUIRE);

		*place = at;
		if (!m || (m->begin == begin && m->identity == identity))
			return m;
	}
	*place = TABLE_SIZE;
	return NULL;
}

/*
 * While one thread reads the symbols of a module, a second thread reads them too: no thread waits, and no signal
 * handler.
 */
static struct ptt_module *add(const struct dl_find_object *object, uint64_t identity, uint32_t place)
{
	struct ptt_module *m = ptt_take_memory(sizeof(*m)), *other = NULL;

	if (!m)
		return NULL;
	m->begin = (uintptr_t)object->dlfo_map_start;
	m->end = (uintptr_t)object->dlfo_map_end;
	m->base = object->dlfo_link_map->l_addr;
	m->identity = identity;
	ptt_read_wrappers(m, object);
	/* release: pairs with the acquire of find(); the entry is complete */
	while (!__atomic_compare_exchange_n(&table[place], &other, m, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {
		if (other->begin == m->begin && other->identity == identity)
			return other;
		if (find(m->begin, identity, &place) || place == TABLE_SIZE)
			return place == TABLE_SIZE ? NULL : table[place];
		other = NULL;
	}
	m->next = __atomic_load_n(&all, __ATOMIC_RELAXED);
	/* release: pairs with the acquires of present_at(), ptt_end_closing(), ptt_modules_anew() */
	while (!__atomic_compare_exchange_n(&all, &m->next, m, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return m;
}

/*
 * Report the module to the handler, which stamps its time, and then mark it as reported. A second thread may report
 * it too: the earlier time counts.
 */
static void report_module(struct ptt_module *m, const struct dl_find_object *object, const struct extent *whole,
		 const struct build_id *id)
{
	struct nptl_trace_module module = {
		.start = (const void *)whole->begin,
		.end = (const void *)whole->end,
		.bias = object->dlfo_link_map->l_addr,
		.path = object->dlfo_link_map->l_name,
		.build_id = id->at,
		.build_id_size = id->size,
	};

	if (ptt_handler_module)
		ptt_handler_module(&module);
	/* relaxed: compared only */
	__atomic_store_n(&m->map, object->dlfo_link_map, __ATOMIC_RELAXED);
	/* release: pairs with the acquires of present_at() and ptt_module_of(); the handler has the module */
	__atomic_store_n(&m->present, true, __ATOMIC_RELEASE);
}

/* The entry of a module, if the program has unmapped its headers since the entry was made. */
static const struct ptt_module *present_at(const struct dl_find_object *object)
{
	/* acquire: pairs with the release of add() */
	const struct ptt_module *m = __atomic_load_n(&all, __ATOMIC_ACQUIRE);

	/* relaxed and acquire: pair with report_module() */
	while (m && !(m->begin == (uintptr_t)object->dlfo_map_start &&
		      __atomic_load_n(&m->present, __ATOMIC_ACQUIRE) &&
		      __atomic_load_n(&m->map, __ATOMIC_RELAXED) == object->dlfo_link_map))
		m = m->next;
	return m;
}

const struct ptt_module *ptt_module_of(const struct dl_find_object *object)
{
	struct extent whole = extent_of(object);
	struct dl_find_object module = *object;
	struct build_id id = build_id_of(&whole, module.dlfo_link_map->l_addr);
	uint64_t identity = identity_of(&whole, module.dlfo_link_map->l_name, &id);
	const struct ptt_module *known = whole.count ? NULL : present_at(object);
	uint32_t place;
	struct ptt_module *m;

	if (known)
		return known;
	/* the whole module, not only a segment of a program with gaps */
	module.dlfo_map_start = (void *)whole.begin;
	module.dlfo_map_end = (void *)whole.end;
	m = find(whole.begin, identity, &place);
	/* a program that has given up system calls gets no new entries */
	if (!m && !ptt_is_confined() && place < TABLE_SIZE)
		m = add(&module, identity, place);
	/* acquire: pairs with report_module() */
	if (m && !ptt_is_confined() && !__atomic_load_n(&m->present, __ATOMIC_ACQUIRE))
		report_module(m, &module, &whole, &id);
	return m;
}

/* ------------------------------------------------------------ kinds of code */

enum ptt_kind_of_code ptt_kind_of_code(const struct dl_find_object *module, uintptr_t function)
{
	const struct ptt_module *m;

	if (ptt_module_holds(module, (const void *)(uintptr_t)gnu_get_libc_version) || ptt_module_holds(module, &ptt_real))
		return PTT_CODE_LIBRARY;
	m = ptt_module_of(module);
	if (!m)
		return PTT_CODE_PROGRAM;
	if (m->foreign)
		return PTT_CODE_LIBRARY;
	if (m->passed_over)
		return PTT_CODE_RUNTIME;
	return ptt_find_wrapper(m, function) ? PTT_CODE_WRAPPER : PTT_CODE_PROGRAM;
}

uint8_t ptt_futex_kind(const struct dl_find_object *module, uintptr_t function)
{
	const struct ptt_module *m = ptt_module_of(module);

	return m ? (uint8_t)(ptt_find_wrapper(m, function) >> PTT_WRAPPER_FUTEX_SHIFT) : 0;
}

/* ------------------------------------------------------------ dlclose() */

static void forget(void)
{
	ptt_forget_call_sites();
	if (ptt_handler_module)
		ptt_handler_module(NULL);
}

void ptt_begin_closing(void)
{
	own_closing++;
	/* seq_cst: pairs with the loads of ptt_closing(): a thread that adds to a cache later checks again, and sees this */
	__atomic_fetch_add(&ptt_closing_count, (UINT64_C(1) << 32) + 1, __ATOMIC_SEQ_CST);
	forget();
}

void ptt_end_closing(const void *library)
{
	/* acquire: pairs with the release of add() */
	struct ptt_module *m = __atomic_load_n(&all, __ATOMIC_ACQUIRE);
	struct dl_find_object object;

	for (; m; m = m->next) {
		const struct link_map *map = __atomic_load_n(&m->map, __ATOMIC_RELAXED);

		/*
		 * Do not read the memory: another module may be there by now, and may be closed as well. relaxed: the
		 * caller of dlclose() has seen the library loaded; for other libraries the order does not matter
		 */
		if (__atomic_load_n(&m->present, __ATOMIC_RELAXED) &&
		    (map == library || ptt_find_object((void *)m->begin, &object) != 0 || object.dlfo_link_map != map))
			__atomic_store_n(&m->present, false, __ATOMIC_RELAXED);
	}
	forget();
	own_closing--;
	/* seq_cst: as in ptt_begin_closing() */
	__atomic_fetch_add(&ptt_closing_count, (UINT64_C(1) << 32) - 1, __ATOMIC_SEQ_CST);
}

void ptt_closing_in_child(void)
{
	__atomic_store_n(&ptt_closing_count, own_closing, __ATOMIC_RELAXED);
}

void ptt_modules_anew(void)
{
	/* acquire: pairs with the release of add() */
	struct ptt_module *m = __atomic_load_n(&all, __ATOMIC_ACQUIRE);

	for (; m; m = m->next)
		__atomic_store_n(&m->present, false, __ATOMIC_RELAXED);
	ptt_forget_call_sites();
}
