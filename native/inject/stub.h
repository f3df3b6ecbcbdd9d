/* SPDX-License-Identifier: MIT */
/* stub.h - the data beside the instructions that run in the process. stub.S has the same offsets. */
#ifndef PTT_STUB_H
#define PTT_STUB_H

#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#include "layout/ptt_abi.h"

#define PTT_STUB_CODE 4096u   /* the first page */
#define PTT_STUB_SIZE PTT_ATTACH_MEMORY /* all the memory; its end is the stack */
#define PTT_STUB_TEXT 512u
#define PTT_STUB_FLOATS 8192u

struct ptt_stub {
	uint64_t create, detach, dlopen, dlsym, dlerror, munmap;
	uint64_t memory, size;
	uint64_t floats; /* the saved parts of the floating point state: a mask for XSAVE */
	uint64_t mask;	 /* blocked signals of the new thread */
	uint64_t thread; /* the new thread */
	uint32_t status;
	int32_t error;
	char library[PTT_STUB_TEXT * 8];
	char function[PTT_STUB_TEXT];
	char text[PTT_STUB_TEXT * 8];
	char reason[256];
	/* the frame that rt_sigreturn(2) restores, in the kernel's layout */
	uint64_t frame[(40 + 256 + 8) / 8];
	uint8_t state[PTT_STUB_FLOATS] __attribute__((aligned(64)));
};
_Static_assert(offsetof(struct ptt_stub, memory) == 48, "stub.S");
_Static_assert(offsetof(struct ptt_stub, floats) == 64, "stub.S");
_Static_assert(offsetof(struct ptt_stub, thread) == 80, "stub.S");
_Static_assert(offsetof(struct ptt_stub, status) == 88, "stub.S");
_Static_assert(offsetof(struct ptt_stub, library) == 96, "stub.S");
_Static_assert(offsetof(struct ptt_stub, function) == 4192, "stub.S");
_Static_assert(offsetof(struct ptt_stub, text) == 4704, "stub.S");
_Static_assert(PTT_STUB_CODE + offsetof(struct ptt_stub, text) == PTT_ATTACH_TEXT_AT, "where the agent looks for its memory");
_Static_assert(offsetof(struct ptt_stub, reason) == 8800, "stub.S");
_Static_assert(offsetof(struct ptt_stub, frame) == 9056, "stub.S");
_Static_assert(offsetof(struct ptt_stub, state) == 9408, "stub.S");
_Static_assert(PTT_STUB_CODE + sizeof(struct ptt_stub) + 65536 < PTT_STUB_SIZE, "room for a stack");

extern const char ptt_stub_begin[] __attribute__((visibility("hidden")));
extern const char ptt_stub_end[] __attribute__((visibility("hidden")));

#endif
