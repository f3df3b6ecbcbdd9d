/* SPDX-License-Identifier: MIT */
/* module_log.c - a line for each module that a call was first seen from, or seen from anew after it was loaded again. */
#include "module_log.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "../platform/clock.h"
#include "../platform/confined.h"
#include "../platform/may_write.h"
#include "../platform/raw_syscall.h"
#include "image_file.h"
#include "../writer/session.h"
#include "../writer/writer.h"

/* The whole log stays below it. */
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

/* A path that the program gave the dynamic linker may count from where it is. Too long for a stack; one thread at a time. */
static char place[PATH_MAX];
static int place_taken;

void ptt_ring_note_module(const struct nptl_trace_module *module)
{
	char line[4 * 17 + 2 * BUILD_ID_MAX + 8], *end;
	struct iovec parts[4] = {{0}};
	bool relative = module->path[0] && module->path[0] != '/', taken;

	if (!ptt_session.segment || ptt_is_confined() || !ptt_may_write(LOG_MAX) || strchr(module->path, '\n'))
		return;
	end = ptt_put_hex(line, ptt_clock(ptt_ring.clock));
	end = ptt_put_hex(end, (uintptr_t)module->start);
	end = ptt_put_hex(end, (uintptr_t)module->end);
	end = ptt_put_hex(end, module->bias);
	end = put_build_id(end, module->build_id, module->build_id_size);
	parts[0] = (struct iovec){.iov_base = line, .iov_len = (size_t)(end - line)};
	/* acquire, and release below: the text is of whoever has it */
	taken = relative && !__atomic_exchange_n(&place_taken, 1, __ATOMIC_ACQUIRE);
	if (taken) {
		long n = ptt_raw_syscall(SYS_getcwd, (long)place, sizeof(place), 0, 0, 0, 0);

		if (n > 1) {
			place[n - 1] = '/';
			parts[1] = (struct iovec){.iov_base = place, .iov_len = (size_t)n};
		}
	}
	parts[2] = (struct iovec){.iov_base = (void *)(uintptr_t)module->path, .iov_len = strlen(module->path)};
	parts[3] = (struct iovec){.iov_base = (void *)(uintptr_t) "\n", .iov_len = 1};
	ptt_append_to_image("/modules-", parts, 4);
	if (taken)
		__atomic_store_n(&place_taken, 0, __ATOMIC_RELEASE);
}
