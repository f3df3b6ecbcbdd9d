/* SPDX-License-Identifier: MIT */
/* image_files.c - files in the session directory that a process image appends to: its modules, and its functions of Python. */
#include "image_files.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "../platform/clock.h"
#include "../platform/confined.h"
#include "../platform/own_process.h"
#include "../platform/raw_syscall.h"
#include "../writer/session.h"
#include "../writer/writer.h"

#define HEX_MAX 17u /* bytes of a number and a space */

/* Put a number and a space. Return: their end. */
static char *put_hex(char *to, uint64_t value)
{
	int shift = 60;

	while (shift && !(value >> shift & 15))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		*to++ = "0123456789abcdef"[value >> shift & 15];
	*to++ = ' ';
	return to;
}

/*
 * Append @parts in one write to the file with the name @name, for example "/modules-", and the number of the process image.
 * Async-signal-safe, no cancellation point; call it only if the program allows system calls. Fails in silence.
 */
static void append(const char *name, const struct iovec *parts, int count)
{
	char path[sizeof(ptt_session.directory) + 32];
	long fd;

	*ptt_put_decimal(path + strlen(strcat(strcpy(path, ptt_session.directory), name)), ptt_session.image) = '\0';
	/* O_NONBLOCK: the program may have put a pipe in its place */
	fd = ptt_raw_syscall(SYS_openat, AT_FDCWD, (long)path,
			     O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600, 0, 0);
	if (fd < 0)
		return;
	ptt_raw_syscall(SYS_writev, fd, (long)parts, count, 0, 0, 0);
	ptt_raw_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
}

/* ------------------------------------------------------------ modules */

/* The whole log stays below this size. */
#define LOG_MAX (16u << 20)
#define BUILD_ID_MAX 64u

static char *put_build_id(char *to, const uint8_t *id, size_t size)
{
	size_t i;

	for (i = 0; i < size && i < BUILD_ID_MAX; i++) {
		*to++ = "0123456789abcdef"[id[i] >> 4];
		*to++ = "0123456789abcdef"[id[i] & 15];
	}
	*to++ = '-';
	*to++ = ' ';
	return to;
}

/*
 * The program may have given the dynamic linker a relative path. The working directory is too long for a stack, so it
 * stands here, for one thread at a time.
 */
static char working_directory[PATH_MAX];
static int working_directory_taken;

void ptt_ring_note_module(const struct nptl_trace_module *module)
{
	char line[4 * HEX_MAX + 2 * BUILD_ID_MAX + 8], *end;
	struct iovec parts[4] = {{0}};
	bool relative = module->path[0] && module->path[0] != '/', taken;

	if (!ptt_session.segment || ptt_session.is_box || ptt_is_confined() || !ptt_may_write(LOG_MAX) || strchr(module->path, '\n'))
		return;
	end = put_hex(line, ptt_clock(ptt_ring.clock));
	end = put_hex(end, (uintptr_t)module->start);
	end = put_hex(end, (uintptr_t)module->end);
	end = put_hex(end, module->bias);
	end = put_build_id(end, module->build_id, module->build_id_size);
	parts[0] = (struct iovec){.iov_base = line, .iov_len = (size_t)(end - line)};
	/* acquire, and release below: the text belongs to one thread */
	taken = relative && !__atomic_exchange_n(&working_directory_taken, 1, __ATOMIC_ACQUIRE);
	if (taken) {
		long n = ptt_raw_syscall(SYS_getcwd, (long)working_directory, sizeof(working_directory), 0, 0, 0, 0);

		if (n > 1) {
			working_directory[n - 1] = '/';
			parts[1] = (struct iovec){.iov_base = working_directory, .iov_len = (size_t)n};
		}
	}
	parts[2] = (struct iovec){.iov_base = (void *)(uintptr_t)module->path, .iov_len = strlen(module->path)};
	parts[3] = (struct iovec){.iov_base = (void *)(uintptr_t) "\n", .iov_len = 1};
	append("/modules-", parts, 4);
	if (taken)
		__atomic_store_n(&working_directory_taken, 0, __ATOMIC_RELEASE);
}

/* ------------------------------------------------------------ code objects of Python */

/* The whole file stays below this size. */
#define CODES_MAX (64u << 20)
#define PROBES 32u
#define HASH_SHIFT 49
_Static_assert(PTT_PYTHON_CODES == 1u << (64 - HASH_SHIFT), "a hash is a number");

static void append_code(uint32_t number, const struct ptt_python_code *code)
{
	const uint64_t head[] = {number, code->minor, code->first_line, code->file.width, code->file.size,
				 code->name.width, code->name.size, code->lines.size};
	char line[sizeof(head) / sizeof(head[0]) * HEX_MAX], *end = line;
	size_t i;

	for (i = 0; i < sizeof(head) / sizeof(head[0]); i++)
		end = put_hex(end, head[i]);
	end[-1] = '\n';
	append("/python-", (const struct iovec[]){
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
		uint64_t *entry = &ptt_site_table.python[number], identity;

		if (!number)
			continue;
		/* relaxed, all: the word leads to no other memory */
		identity = __atomic_load_n(entry, __ATOMIC_RELAXED);
		if (identity == code->identity)
			return number;
		if (identity)
			continue;
		if (ptt_session.is_box || ptt_is_confined() || !ptt_may_write(CODES_MAX) || !code->describe(code))
			return 0;
		if (__atomic_compare_exchange_n(entry, &identity, code->identity, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			append_code(number, code);
			return number;
		}
		if (identity == code->identity)
			return number;
	}
	return 0;
}
