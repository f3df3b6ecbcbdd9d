/* SPDX-License-Identifier: MIT */
/* unwind_fuzz.c - looks up addresses in damaged unwind tables, and must read no byte outside: unwind_fuzz LIBRARY ROUNDS */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unwind.h"
#include "unwind_image.h"

static uint64_t state = 1;

static uint64_t any(uint64_t below)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (state >> 16) % below;
}

struct image {
	uint8_t *at;
	uint64_t size, table, table_size, frames;
};

static int load(const char *path, struct image *image)
{
	static uint8_t file[64 << 20];
	FILE *in = fopen(path, "rb");
	size_t size = in ? fread(file, 1, sizeof(file), in) : 0;
	const Elf64_Ehdr *head = (const void *)file;
	const Elf64_Phdr *p = (const void *)(file + head->e_phoff);

	if (in)
		fclose(in);
	if (size < sizeof(*head))
		return -1;
	for (int i = 0; i < head->e_phnum; i++)
		if (p[i].p_type == PT_LOAD && p[i].p_vaddr + p[i].p_memsz > image->size)
			image->size = p[i].p_vaddr + p[i].p_memsz;
	image->at = calloc(1, image->size);
	for (int i = 0; i < head->e_phnum; i++) {
		if (p[i].p_type == PT_LOAD)
			memcpy(image->at + p[i].p_vaddr, file + p[i].p_offset, p[i].p_filesz);
		if (p[i].p_type == PT_GNU_EH_FRAME) {
			image->table = p[i].p_vaddr;
			image->table_size = p[i].p_memsz;
		}
	}
	/* the second word of the header has the 32-bit distance from itself to .eh_frame */
	image->frames = image->table + 4 + (uint64_t)(int64_t)*(int32_t *)(image->at + image->table + 4);
	return image->table ? 0 : -1;
}

int main(int count, char **arg)
{
	struct image image = {0};
	unsigned long found = 0, rounds = count == 3 ? strtoul(arg[2], NULL, 10) : 0, i;

	if (!rounds || load(arg[1], &image))
		return 2;
	for (i = 0; i < rounds; i++) {
		/* the entries follow the table that points to them */
		uint64_t span = any(4) ? 1 << 16 : image.table_size, at = image.table + any(span);
		uint8_t *byte = &image.at[at < image.size ? at : image.table], before = *byte;
		struct ptt_unwind_table table =
			ptt_unwind_module(image.at + image.table, (uintptr_t)image.at, (uintptr_t)image.at + image.size);
		struct ptt_unwind_callers callers;
		struct ptt_unwind_row row;

		*byte = any(2) ? (uint8_t)any(256) : (uint8_t)(before ^ 1 << any(8));
		for (int k = 0; k < 64; k++)
			found += ptt_unwind_row(&table, (uintptr_t)image.at + any(image.table), &row);
		/* through all entries, for both processors */
		found += (unsigned long)ptt_unwind_image_callers((const char *)image.at, image.size, 0, image.size,
								 image.frames, i % 2, any(image.table), &callers);
		if (i % 64)
			*byte = before;
	}
	free(image.at);
	printf("%lu\n", found);
	return 0;
}
