/* SPDX-License-Identifier: MIT */
/* fuzz_unwind.c - unwind tables and stacks with any contents under libFuzzer: the walk up the stack, and tables of files. */
/*
 * The first half of an input is a module that begins with its unwind table. The second half is a stack. The module has another
 * address in each run, so the stack has offsets for addresses in the module: see place(). The walker is static, so this file
 * includes its file. Stubs replace the other parts of the tracer.
 */
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../../native/tracer/call_site/call_site.c"
#include "unwind_image.h"

#define IN_MODULE UINT64_C(0xC0DE)
#define ON_STACK UINT64_C(0x57AC)
#define FRAMES 64

bool ptt_has_python;
__thread const struct ptt_java_wait *ptt_java_now;

uint32_t ptt_java_stack(const struct ptt_stack_wanted *wanted)
{
	(void)wanted;
	abort();
}

#define STACK_MAX ((size_t)1 << 16)

static struct {
	uint8_t *at;
	size_t size;
} module, stack;

/* No memory follows the stack: the walker reads stacks without the sanitizer, which would not see an overrun. */
static uint8_t *stack_end(void)
{
	static uint8_t *end;
	uint8_t *at;

	if (end)
		return end;
	at = mmap(NULL, STACK_MAX + PTT_REACH_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED || mprotect(at + STACK_MAX, PTT_REACH_PAGE, PROT_NONE))
		abort();
	end = at + STACK_MAX;
	return end;
}

static int find_object(void *address, struct dl_find_object *found)
{
	static struct link_map map;

	if ((uint8_t *)address < module.at || (uint8_t *)address >= module.at + module.size)
		return -1;
	*found = (struct dl_find_object){.dlfo_map_start = module.at,
					 .dlfo_map_end = module.at + module.size,
					 .dlfo_link_map = &map,
					 .dlfo_eh_frame = module.at};
	return 0;
}

int (*ptt_find_object)(void *address, struct dl_find_object *found) = find_object;

void ptt_module_extent(const struct dl_find_object *found, uintptr_t *begin, uintptr_t *end)
{
	*begin = (uintptr_t)found->dlfo_map_start;
	*end = (uintptr_t)found->dlfo_map_end;
}

const struct ptt_module *ptt_module_of(const struct dl_find_object *found)
{
	(void)found;
	return NULL;
}

enum ptt_kind_of_code ptt_kind_of_code(const struct dl_find_object *found, uintptr_t function)
{
	(void)found;
	(void)function;
	return PTT_CODE_WRAPPER;
}

uint8_t ptt_futex_kind(const struct dl_find_object *found, uintptr_t function)
{
	(void)found;
	(void)function;
	return 0;
}

bool ptt_futex_is_outer(uint8_t kind)
{
	return kind;
}

struct ptt_reach ptt_reach_from(uintptr_t sp)
{
	(void)sp;
	return (struct ptt_reach){.page = 1};
}

/* There is no other page: the sanitizer would report reads beyond the stack. */
bool ptt_reach_page(struct ptt_reach *reach, uintptr_t address)
{
	(void)reach;
	(void)address;
	return false;
}

bool ptt_can_read(const void *begin, size_t size)
{
	(void)begin;
	(void)size;
	return true;
}

bool ptt_python_begin(struct ptt_python *p, const struct ptt_reach *reach, struct ptt_words_read *read)
{
	(void)p;
	(void)reach;
	(void)read;
	return false;
}

uintptr_t ptt_python_state(void)
{
	return 0;
}

bool ptt_python_is_run_by(const struct ptt_python *p, uintptr_t low, uintptr_t high, uintptr_t pc)
{
	(void)p;
	return low > high && pc;
}

uint32_t ptt_python_run(struct ptt_python *p, uint64_t *frame, uint32_t room, ptt_number_python_code *number)
{
	(void)p;
	(void)frame;
	(void)number;
	return room ? 0 : 1;
}

bool ptt_python_has(uintptr_t pc)
{
	return !pc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "fuzz_unwind: %s\n", what);
	abort();
}

/* A word of the stack that begins with a mark is an offset from the start of the module or of the stack. */
static void place(uint64_t *word)
{
	uint64_t mark = *word >> 48, offset = *word & UINT32_MAX;

	if (mark == IN_MODULE)
		*word = (uintptr_t)module.at + offset % (module.size + 1);
	else if (mark == ON_STACK)
		*word = (uintptr_t)stack.at + offset % (stack.size + 1);
}

static void walk_up(const struct ptt_registers *first)
{
	struct ptt_registers all = *first;
	uint64_t frame[FRAMES];
	struct frame f = {
		.pc = all.value[PTT_REG_RA],
		.sp = all.value[PTT_REG_SP],
		.fp = all.value[PTT_REG_BP],
		.reach = {.low = (uintptr_t)stack.at, .high = (uintptr_t)stack.at + stack.size, .page = 1},
		.all = &all,
	};
	bool whole = false;
	uint32_t n = walk(f, frame, FRAMES, &whole);

	must(n <= FRAMES, "more frames than there is room for");
	must(!whole || n, "a whole stack without a frame");
	while (n--)
		must(frame[n] && frame[n] <= ADDRESS_MASK, "a frame that is no address");
}

/* The module also serves as the table of a file: with and without a header, for both processors. */
static void look_up(void)
{
	uint64_t pc = *(uint64_t *)stack.at, at = ((uint64_t *)stack.at)[1] % (module.size + 1);

	for (int32_t processor = PTT_UNWIND_X86_64; processor <= PTT_UNWIND_AARCH64; processor++) {
		for (uint64_t header = 0; header <= module.size; header += module.size) {
			struct ptt_unwind_callers callers;
			int32_t known = ptt_unwind_image_callers((const char *)module.at, module.size, (uintptr_t)module.at, header,
								 at, processor, pc, &callers);

			must(!known || callers.function <= pc, "a function that begins behind the place");
			must(!known || callers.is_signal || callers.cfa_register < PTT_UNWIND_REGISTERS, "an address from no register");
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ptt_registers first = {.known = (1u << PTT_REG_COUNT) - 1};
	uint64_t word;
	size_t i;

	stack.size = size / 2 & ~(sizeof(word) - 1);
	if (stack.size < sizeof(first.value) || stack.size > STACK_MAX)
		return 0;
	module.size = size - stack.size;
	module.at = malloc(module.size);
	stack.at = stack_end() - stack.size;
	memcpy(module.at, data, module.size);
	memcpy(stack.at, data + module.size, stack.size);
	for (i = 0; i < stack.size; i += sizeof(word))
		place((uint64_t *)(stack.at + i));
	memcpy(first.value, stack.at, sizeof(first.value));
	walk_up(&first);
	look_up();
	ptt_forget_call_sites();
	memset(ptt_rules, 0, sizeof(ptt_rules));
	free(module.at);
	return 0;
}
