/* SPDX-License-Identifier: MIT */
/* module_list.c - keeps the list of modules that calls come from. */
#include "module_list.h"

#include <string.h>
#include <sys/syscall.h>

#include "platform/confined.h"
#include "platform/raw_syscall.h"

static struct module_note notes[MODULE_NOTES_MAX];
static uint32_t note_count;

/* Make a path absolute: the dynamic linker may have a path relative to the working directory. Return: false if it is too long. */
static bool set_path(char *to, const char *path)
{
	size_t size = strlen(path) + 1, used = 0;
	long n;

	if (path[0] && path[0] != '/' && !ptt_is_confined()) {
		n = ptt_raw_syscall(SYS_getcwd, (long)to, MODULE_PATH_MAX, 0, 0, 0, 0);
		if (n <= 1)
			return false;
		used = (size_t)n;
		to[used - 1] = '/'; /* in place of the final zero */
	}
	if (used + size > MODULE_PATH_MAX)
		return false;
	memcpy(to + used, path, size);
	return true;
}

void module_list_add(const struct nptl_trace_module *module, uint64_t now)
{
	/* relaxed: no other thread has this place */
	uint32_t number = __atomic_fetch_add(&note_count, 1, __ATOMIC_RELAXED);
	struct module_note *note = &notes[number];

	if (number >= MODULE_NOTES_MAX) {
		__atomic_store_n(&note_count, MODULE_NOTES_MAX, __ATOMIC_RELAXED);
		return;
	}
	note->start = (uint64_t)(uintptr_t)module->start;
	note->end = (uint64_t)(uintptr_t)module->end;
	note->bias = module->bias;
	note->since = now;
	if (module->build_id_size <= sizeof(note->build_id)) {
		note->build_id_size = (uint32_t)module->build_id_size;
		memcpy(note->build_id, module->build_id, module->build_id_size);
	}
	if (!set_path(note->path, module->path))
		return;
	/* release: pairs with the acquire of module_list_at() */
	__atomic_store_n(&note->ready, 1, __ATOMIC_RELEASE);
}

const struct module_note *module_list_at(uint32_t number)
{
	/* acquire: pairs with the release of module_list_add() */
	return number < MODULE_NOTES_MAX && __atomic_load_n(&notes[number].ready, __ATOMIC_ACQUIRE) ? &notes[number] : NULL;
}

const struct module_note *module_list_find(uint64_t address)
{
	/* relaxed: no event of this thread comes from a newer module */
	uint32_t number = __atomic_load_n(&note_count, __ATOMIC_RELAXED);
	const struct module_note *note;

	if (number > MODULE_NOTES_MAX)
		number = MODULE_NOTES_MAX;
	while (number--) {
		note = module_list_at(number);
		if (note && address >= note->start && address < note->end)
			return note;
	}
	return NULL;
}

void module_list_span(const struct dl_phdr_info *info, uint64_t *start, uint64_t *end)
{
	*start = UINT64_MAX;
	*end = 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t at = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && at < *start)
			*start = at;
		if (p->p_type == PT_LOAD && at + p->p_memsz > *end)
			*end = at + p->p_memsz;
	}
}
