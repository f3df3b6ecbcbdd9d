/* SPDX-License-Identifier: MIT */
/* python_code.h - the code objects of Python that are in stacks: as the tracer describes them, and as they are numbered. */
#ifndef PTT_PYTHON_CODE_H
#define PTT_PYTHON_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Characters of one, two or four bytes, in the interpreter's memory. */
struct ptt_python_text {
	const void *at;
	size_t size; /* in bytes */
	uint32_t width;
};

struct ptt_python_code {
	uint64_t identity; /* never 0; the same for the same code, as far as that can be known by its addresses */

	/* describe - fill in what follows. Return: false if it cannot be read, or is no code. Async-signal-safe. */
	bool (*describe)(struct ptt_python_code *code);

	uint32_t minor; /* version of the interpreter */
	uint32_t first_line;
	struct ptt_python_text file, name, lines;
};

/* Return: the number of a code object in this process; 0 if it has none. */
typedef uint32_t ptt_number_python_code(struct ptt_python_code *code);

/*
 * ptt_ring_python_code - number a code object, and write down what it is when it is met first
 *
 * A line of numbers in hexadecimal, then the bytes of file, name and line table, and a newline, are appended to the file
 * python-<image> in the session directory: see ptt_abi.h. Async-signal-safe, takes no lock, allocates nothing, no cancellation
 * point. The number is 0 where the program may write no file, or has too many code objects.
 */
ptt_number_python_code ptt_ring_python_code __attribute__((visibility("hidden")));

#endif
