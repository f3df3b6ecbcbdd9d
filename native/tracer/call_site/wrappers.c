/* SPDX-License-Identifier: MIT */
/* wrappers.c - the set of wrappers of a module, made once from its symbols. */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "modules.h"
#include "platform/confined.h"
#include "platform/raw_syscall.h"
#include "reach.h"
#include "wrappers.h"

/* ------------------------------------------------------------ code */

/*
 * Is a function compiled without optimisation? Such a function sets up a frame, and then stores its first argument
 * there. The compiler inlined nothing into it. An optimised function looks the same if it keeps a frame pointer, as
 * all do on aarch64, and needs its argument in memory. On aarch64 the test does not recognise frames of more than 4
 * KiB, nor Clang's functions that return a struct.
 */
#if defined(__aarch64__)
/* Fields of an instruction (Arm ARM, C4.1): offsets from a register, the stored register, and its size. */
#define IMM12 0x3ffc00u
#define IMM9 0x1ff000u
#define IMM7 0x3f8000u
#define RT 0x1fu
#define SIZE 0xc0000000u

/* @variable: the bits that may have any value */
static bool is(uint32_t code, uint32_t wanted, uint32_t variable)
{
	return (code & ~variable) == wanted;
}

/* Does the instruction store one or two preserved registers to the stack? */
static bool saves_register(uint32_t code)
{
	bool stores = is(code, 0xf90003e0, IMM12 | RT) || is(code, 0xa90003e0, IMM7 | 0x7c00 | RT);

	return stores && (code & RT) >= 19 && (code & RT) <= 28;
}

static bool is_unoptimised(const uint8_t *code)
{
	const uint32_t *at = (const uint32_t *)(const void *)code;
	int saved = 0;

	at += is(*at, 0xd503245f, 0); /* bti c */
	at += is(*at, 0xd503233f, 0); /* paciasp */
	at += is(*at, 0xd10003ff, IMM12); /* sub sp, sp, … */
	if (!is(*at, 0xa9807bfd, IMM7) && !is(*at, 0xa9007bfd, IMM7)) /* stp x29, x30, [sp, …], which may move sp */
		return false;
	at++;
	if (!is(*at, 0x910003fd, IMM12)) /* add x29, sp, … */
		return false;
	for (at++; saved < 3 && saves_register(*at); at++)
		saved++;
	/* mov x19, x8: the address of the result */
	at += is(*at, 0xaa0803e0, RT) && (*at & RT) >= 19 && (*at & RT) <= 28;
	/* str x0, [sp, …], or [x29, …] behind an array of variable length, or stur x0, [x29, …]; GCC has a byte of an empty struct */
	return is(*at, 0x390003e0, SIZE | IMM12) || is(*at, 0x390003a0, SIZE | IMM12) || is(*at, 0x380003a0, SIZE | IMM9);
}
#elif defined(__x86_64__)
static const uint8_t *past(const uint8_t *code, const char *bytes, size_t size)
{
	return memcmp(code, bytes, size) == 0 ? code + size : code;
}

static bool is_unoptimised(const uint8_t *code)
{
	const uint8_t *at = past(code, "\xf3\x0f\x1e\xfa", 4); /* endbr64 */
	const uint8_t *framed = past(at, "\x55\x48\x89\xe5", 4); /* push %rbp; mov %rsp,%rbp */

	if (framed == at)
		return false;
	at = framed;
	while (*at == 0x53 || (*at == 0x41 && at[1] >= 0x54 && at[1] <= 0x57)) /* push %rbx, %r12 … */
		at += *at == 0x53 ? 1 : 2;
	if (at[0] == 0x48 && at[1] == 0x83 && at[2] == 0xec) /* sub $…,%rsp */
		at += 4;
	else if (at[0] == 0x48 && at[1] == 0x81 && at[2] == 0xec)
		at += 7;
	at = past(at, "\x48", 1);
	return at[0] == 0x89 && (at[1] == 0x7d || at[1] == 0xbd); /* mov %rdi,…(%rbp) */
}
#endif

/* Bytes that is_unoptimised() reads, at most: ten instructions of aarch64. */
#define PROLOGUE_MAX 40u

/* ------------------------------------------------------------ sets */

static uint32_t place_of(uint32_t offset, uint32_t mask)
{
	return (offset * UINT32_C(0x9e3779b1) >> 7) & mask;
}

static void put_into(uint64_t *set, uint32_t mask, uint32_t offset, uint8_t futex)
{
	uint32_t at = place_of(offset, mask);

	while (set[at] && (uint32_t)set[at] != offset)
		at = (at + 1) & mask;
	set[at] = offset | (uint64_t)futex << PTT_WRAPPER_FUTEX_SHIFT;
}

uint64_t ptt_find_wrapper(const struct ptt_module *m, uintptr_t function)
{
	uint32_t offset = (uint32_t)(function - m->base), at;

	if (!m->wrappers)
		return 0;
	for (at = place_of(offset, m->mask); m->wrappers[at]; at = (at + 1) & m->mask)
		if ((uint32_t)m->wrappers[at] == offset)
			return m->wrappers[at];
	return 0;
}

/* ------------------------------------------------------------ files */

struct file {
	const char *at;
	size_t size;
};

static void *map(size_t size, int fd)
{
	long at = ptt_raw_syscall(SYS_mmap, 0, (long)size, PROT_READ, MAP_PRIVATE, fd, 0);

	return at < 0 && at > -4096 ? NULL : (void *)at;
}

static bool map_file(const char *path, struct file *file)
{
	long fd = ptt_raw_syscall(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0, 0, 0);
	struct stat about;

	if (fd < 0)
		return false;
	*file = (struct file){0};
	if (ptt_raw_syscall(SYS_fstat, fd, (long)&about, 0, 0, 0, 0) == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
		file->size = (size_t)about.st_size;
		file->at = map(file->size, (int)fd);
	}
	ptt_raw_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
	return file->at;
}

/* A part of the file; NULL if the file is too short. */
static const void *part(const struct file *file, uint64_t offset, uint64_t size)
{
	return offset <= file->size && size <= file->size - offset ? file->at + offset : NULL;
}

/* The same for structs: NULL also if they are not aligned. */
static const void *table(const struct file *file, uint64_t offset, uint64_t size)
{
	return offset % sizeof(uint64_t) ? NULL : part(file, offset, size);
}

struct symbols {
	const Elf64_Sym *symbol;
	size_t count;
	const char *names;
	size_t names_size;	    /* the last of these bytes is 0 */
	uintptr_t base, begin, end; /* of the module: address in memory minus address in the file; extent */
	bool passed_over; /* all functions of the module are wrappers */
};

static bool open_section(const struct file *file, const Elf64_Ehdr *head, uint32_t type, struct symbols *s)
{
	const Elf64_Shdr *section = table(file, head->e_shoff, head->e_shnum * sizeof(*section)), *names;
	unsigned int i;

	for (i = 0; section && i < head->e_shnum; i++) {
		if (section[i].sh_type != type || section[i].sh_link >= head->e_shnum)
			continue;
		names = &section[section[i].sh_link];
		s->symbol = table(file, section[i].sh_offset, section[i].sh_size);
		s->count = section[i].sh_size / sizeof(*s->symbol);
		s->names = part(file, names->sh_offset, names->sh_size);
		s->names_size = names->sh_size;
		return s->symbol && s->names && s->names_size && !s->names[s->names_size - 1];
	}
	return false;
}

/* Open the full table of symbols; in a stripped file, the table of exported symbols. */
static bool open_symbols(const struct file *file, struct symbols *s)
{
	const Elf64_Ehdr *head = table(file, 0, sizeof(*head));

	if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64 ||
	    head->e_shentsize != sizeof(Elf64_Shdr))
		return false;
	return open_section(file, head, SHT_SYMTAB, s) || open_section(file, head, SHT_DYNSYM, s);
}

static bool has_unoptimised_code(const struct symbols *s, const Elf64_Sym *symbol)
{
	uintptr_t at = s->base + symbol->st_value;

	return at >= s->begin && at < s->end && s->end - at >= PROLOGUE_MAX && ptt_can_read((const void *)at, PROLOGUE_MAX) &&
	       is_unoptimised((const uint8_t *)at);
}

/* Return: PTT_NAME_OF_WRAPPER, or _PROGRAM for a function that is no wrapper. */
static enum ptt_kind_of_name wrapper_of(const struct symbols *s, const Elf64_Sym *symbol)
{
	enum ptt_kind_of_name kind;

	if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF ||
	    symbol->st_name >= s->names_size || !symbol->st_value || symbol->st_value > UINT32_MAX)
		return PTT_NAME_OF_PROGRAM;
	/* all functions are wrappers: only the kinds of futexes are of interest */
	if (s->passed_over)
		return ptt_futex_of_name(s->names + symbol->st_name) ? PTT_NAME_OF_WRAPPER : PTT_NAME_OF_PROGRAM;
	kind = ptt_wrapper_name(s->names + symbol->st_name);
	if (kind == PTT_NAME_OF_LANGUAGE)
		return has_unoptimised_code(s, symbol) ? PTT_NAME_OF_WRAPPER : PTT_NAME_OF_PROGRAM;
	return kind;
}

static void collect(struct ptt_module *m, const struct symbols *s)
{
	uint32_t count = 0, size = 64;
	uint64_t *set;
	size_t i;

	for (i = 0; i < s->count; i++)
		count += wrapper_of(s, &s->symbol[i]) != PTT_NAME_OF_PROGRAM;
	if (!count || count > UINT32_C(1) << 28)
		return;
	while (size < count * 2)
		size *= 2;
	set = ptt_take_memory(size * sizeof(*set));
	if (!set)
		return;
	for (i = 0; i < s->count; i++) {
		const Elf64_Sym *symbol = &s->symbol[i];

		if (wrapper_of(s, symbol) != PTT_NAME_OF_PROGRAM)
			put_into(set, size - 1, (uint32_t)symbol->st_value, ptt_futex_of_name(s->names + symbol->st_name));
	}
	m->mask = size - 1;
	m->wrappers = set;
}

/* Is this the mapped file? The file may have been replaced. */
static bool is_mapped_file(const struct file *file, const struct dl_find_object *object)
{
	const Elf64_Ehdr *head = object->dlfo_map_start, *in_file = part(file, 0, sizeof(*head));
	uintptr_t base = object->dlfo_link_map->l_addr;
	const Elf64_Phdr *p;
	unsigned int i;

	if (!in_file || !ptt_can_read(head, sizeof(*head)) || memcmp(head, in_file, sizeof(*head)) != 0)
		return false;
	p = table(file, head->e_phoff, head->e_phnum * sizeof(*p));
	for (i = 0; p && i < head->e_phnum; i++) {
		const char *loaded = (const char *)(base + p[i].p_vaddr), *notes = part(file, p[i].p_offset, p[i].p_filesz);

		if (p[i].p_type != PT_NOTE || !p[i].p_filesz)
			continue;
		/* the notes may be the last mapped bytes */
		if (!notes || !ptt_module_holds(object, loaded) || !ptt_module_holds(object, loaded + p[i].p_filesz - 1) ||
		    !ptt_can_read(loaded, p[i].p_filesz) || memcmp(notes, loaded, p[i].p_filesz) != 0)
			return false;
	}
	return p;
}

void ptt_read_wrappers(struct ptt_module *m, const struct dl_find_object *object)
{
	const char *path = object->dlfo_link_map->l_name;
	struct symbols symbols = {
		.base = m->base,
		.begin = (uintptr_t)object->dlfo_map_start,
		.end = (uintptr_t)object->dlfo_map_end,
	};
	struct file file;

	m->passed_over = ptt_wrapper_module(path);
	symbols.passed_over = m->passed_over;
	m->foreign = ptt_foreign_module(path);
	if (m->foreign || (m->passed_over && !ptt_futex_module(path)))
		return;
	if (!map_file(*path ? path : "/proc/thread-self/exe", &file))
		return;
	if (is_mapped_file(&file, object) && open_symbols(&file, &symbols))
		collect(m, &symbols);
	ptt_raw_syscall(SYS_munmap, (long)file.at, (long)file.size, 0, 0, 0, 0);
}
