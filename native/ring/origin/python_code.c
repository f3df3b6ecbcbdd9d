/* SPDX-License-Identifier: MIT */
/* python_code.c - numbers the code objects of Python, each once, and writes down what they are. */
#include "python_code.h"

#include <sys/uio.h>

#include "../platform/confined.h"
#include "../platform/may_write.h"
#include "image_file.h"
#include "../writer/session.h"

/* The whole file stays below it. */
#define FILE_MAX (64u << 20)
#define PROBES 32u
#define HASH_SHIFT 49
_Static_assert(PTT_PYTHON_CODES == 1u << (64 - HASH_SHIFT), "a hash is a number");

static void write_down(uint32_t number, const struct ptt_python_code *code)
{
	const uint64_t head[] = {number, code->minor, code->first_line, code->file.width, code->file.size,
				 code->name.width, code->name.size, code->lines.size};
	char line[sizeof(head) / sizeof(head[0]) * PTT_HEX_MAX], *end = line;
	size_t i;

	for (i = 0; i < sizeof(head) / sizeof(head[0]); i++)
		end = ptt_put_hex(end, head[i]);
	end[-1] = '\n';
	ptt_append_to_image("/python-", (const struct iovec[]){
		{.iov_base = line, .iov_len = (size_t)(end - line)},
		{.iov_base = (void *)(uintptr_t)code->file.at, .iov_len = code->file.size},
		{.iov_base = (void *)(uintptr_t)code->name.at, .iov_len = code->name.size},
		{.iov_base = (void *)(uintptr_t)code->lines.at, .iov_len = code->lines.size},
		{.iov_base = (void *)(uintptr_t) "\n", .iov_len = 1},
	}, 5);
}

uint32_t ptt_ring_python_code(struct ptt_python_code *code)
{
	uint32_t i, number = (uint32_t)(code->identity * UINT64_C(0x9e3779b97f4a7c15) >> HASH_SHIFT);

	for (i = 0; i < PROBES; i++, number = (number + 1) % PTT_PYTHON_CODES) {
		uint64_t *entry = &ptt_site_table.python[number], found;

		if (!number)
			continue;
		/* relaxed, all: the word is all there is */
		found = __atomic_load_n(entry, __ATOMIC_RELAXED);
		if (found == code->identity)
			return number;
		if (found)
			continue;
		if (ptt_is_confined() || !ptt_may_write(FILE_MAX) || !code->describe(code))
			return 0;
		if (__atomic_compare_exchange_n(entry, &found, code->identity, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			write_down(number, code);
			return number;
		}
		if (found == code->identity)
			return number;
	}
	return 0;
}
