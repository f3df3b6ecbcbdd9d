/* SPDX-License-Identifier: MIT */
/* modules.c - distinguishes the modules that have the same addresses one after the other. */
/*
 * A module is known by where it lies and by its build-id, or its headers where it has none. Whatever caches something by
 * address, here and in handlers, forgets it when a module is closed; what the first event after that finds is looked up
 * here. There is an entry for each different module, not for each time that one is loaded.
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

/* ------------------------------------------------------------ what the headers say */

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

/* What the dynamic linker knows as a module, and its program headers; without any where they are not known. */
struct extent {
	uintptr_t begin, end;
	const Elf64_Phdr *headers;
	size_t count;
};

/*
 * The program itself may have holes between its segments, for it is the kernel that maps it: the linker then finds each
 * segment by itself, and the headers lie where the kernel says.
 */
static struct extent extent_of_program(const struct dl_find_object *found)
{
	struct extent whole = {(uintptr_t)found->dlfo_map_start, (uintptr_t)found->dlfo_map_end, NULL, 0};
	uintptr_t base = found->dlfo_link_map->l_addr, begin, end;
	size_t count = getauxval(AT_PHNUM), i;
	const Elf64_Phdr *p = (const void *)getauxval(AT_PHDR);

	if (!p || found->dlfo_link_map->l_prev || !ptt_can_read(p, count * sizeof(*p)))
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

/* Of other modules only headers that lie in the first page, which is mapped as a whole; the program may have closed it since. */
static struct extent extent_of(const struct dl_find_object *found)
{
	const Elf64_Ehdr *head = found->dlfo_map_start;
	struct extent whole = {(uintptr_t)head, (uintptr_t)found->dlfo_map_end, NULL, 0};

	if (!ptt_can_read(head, sizeof(*head)) || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0)
		return extent_of_program(found);
	if (head->e_phentsize == sizeof(Elf64_Phdr) && head->e_phoff % 8 == 0 &&
	    head->e_phoff + head->e_phnum * sizeof(Elf64_Phdr) <= 4096) {
		whole.headers = (const Elf64_Phdr *)((const char *)head + head->e_phoff);
		whole.count = head->e_phnum;
	}
	return whole;
}

void ptt_module_extent(const struct dl_find_object *found, uintptr_t *begin, uintptr_t *end)
{
	struct extent whole = extent_of(found);

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

/* The entry, or the empty place where it belongs; NULL, and no place, if the table is full. */
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
 * A thread that meets a module while another one reads its symbols reads them too: nobody waits, and a signal handler
 * need not either.
 */
static struct ptt_module *add(const struct dl_find_object *found, uint64_t identity, uint32_t place)
{
	struct ptt_module *m = ptt_take_memory(sizeof(*m)), *other = NULL;

	if (!m)
		return NULL;
	m->begin = (uintptr_t)found->dlfo_map_start;
	m->end = (uintptr_t)found->dlfo_map_end;
	m->base = found->dlfo_link_map->l_addr;
	m->identity = identity;
	ptt_read_wrappers(m, found);
	/* release: pairs with the acquire of find(), which sees all of the entry */
	while (!__atomic_compare_exchange_n(&table[place], &other, m, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {
		if (other->begin == m->begin && other->identity == identity)
			return other;
		if (find(m->begin, identity, &place) || place == TABLE_SIZE)
			return place == TABLE_SIZE ? NULL : table[place];
		other = NULL;
	}
	m->next = __atomic_load_n(&all, __ATOMIC_RELAXED);
	/* release: pairs with the acquire of ptt_closed() */
	while (!__atomic_compare_exchange_n(&all, &m->next, m, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return m;
}

/*
 * The handler says since when the module is there before anybody relies on its having said so. A second thread may say it
 * too: the earlier time counts.
 */
static void report_module(struct ptt_module *m, const struct dl_find_object *found, const struct extent *whole,
		 const struct build_id *id)
{
	struct nptl_trace_module module = {
		.start = (const void *)whole->begin,
		.end = (const void *)whole->end,
		.bias = found->dlfo_link_map->l_addr,
		.path = found->dlfo_link_map->l_name,
		.build_id = id->at,
		.build_id_size = id->size,
	};

	if (ptt_handler_module)
		ptt_handler_module(&module);
	/* relaxed: compared only */
	__atomic_store_n(&m->map, found->dlfo_link_map, __ATOMIC_RELAXED);
	/* release: a thread that sees it sees that the handler knows */
	__atomic_store_n(&m->present, true, __ATOMIC_RELEASE);
}

/* The program has closed the headers of a module, whose entry was made before. */
static const struct ptt_module *present_at(const struct dl_find_object *found)
{
	/* acquire: pairs with the release of add() */
	const struct ptt_module *m = __atomic_load_n(&all, __ATOMIC_ACQUIRE);

	/* relaxed and acquire: pair with report_module() */
	while (m && !(m->begin == (uintptr_t)found->dlfo_map_start &&
		      __atomic_load_n(&m->present, __ATOMIC_ACQUIRE) &&
		      __atomic_load_n(&m->map, __ATOMIC_RELAXED) == found->dlfo_link_map))
		m = m->next;
	return m;
}

const struct ptt_module *ptt_module_of(const struct dl_find_object *inside)
{
	struct extent whole = extent_of(inside);
	struct dl_find_object module = *inside, *found = &module;
	struct build_id id = build_id_of(&whole, found->dlfo_link_map->l_addr);
	uint64_t identity = identity_of(&whole, found->dlfo_link_map->l_name, &id);
	const struct ptt_module *known = whole.count ? NULL : present_at(found);
	uint32_t place;
	struct ptt_module *m;

	if (known)
		return known;
	/* not the segment of a program with holes between them */
	module.dlfo_map_start = (void *)whole.begin;
	module.dlfo_map_end = (void *)whole.end;
	m = find(whole.begin, identity, &place);
	/* a program that has given up system calls keeps what was known by then */
	if (!m && !ptt_is_confined() && place < TABLE_SIZE)
		m = add(found, identity, place);
	/* acquire: pairs with report_module() */
	if (m && !ptt_is_confined() && !__atomic_load_n(&m->present, __ATOMIC_ACQUIRE))
		report_module(m, found, &whole, &id);
	return m;
}

/* ------------------------------------------------------------ kinds of code */

static bool holds(const struct dl_find_object *module, const void *place)
{
	return place >= module->dlfo_map_start && place < module->dlfo_map_end;
}

enum ptt_kind_of_code ptt_kind_of_code(const struct dl_find_object *module, uintptr_t function)
{
	const struct ptt_module *m;

	if (holds(module, (const void *)(uintptr_t)gnu_get_libc_version) || holds(module, &ptt_real))
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
	/* seq_cst: a thread that keeps something afterwards looks again, and finds this; pairs with the loads of caches */
	__atomic_fetch_add(&ptt_closing_count, (UINT64_C(1) << 32) + 1, __ATOMIC_SEQ_CST);
	forget();
}

void ptt_end_closing(const void *library)
{
	/* acquire: pairs with the release of add() */
	struct ptt_module *m = __atomic_load_n(&all, __ATOMIC_ACQUIRE);
	struct dl_find_object found;

	for (; m; m = m->next) {
		const struct link_map *map = __atomic_load_n(&m->map, __ATOMIC_RELAXED);

		/* another one may be there by now, whose memory must not be looked at: it may be closed as well */
		/* relaxed: the caller of dlclose() has seen the library loaded; of others it does not matter when */
		if (__atomic_load_n(&m->present, __ATOMIC_RELAXED) &&
		    (map == library || ptt_find_object((void *)m->begin, &found) != 0 || found.dlfo_link_map != map))
			__atomic_store_n(&m->present, false, __ATOMIC_RELAXED);
	}
	forget();
	own_closing--;
	/* seq_cst: as at the beginning */
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
