/* SPDX-License-Identifier: MIT */
/* call_site.c - where a program calls the thread library, past the functions of its language's library in between. */
/*
 * A hook knows the call that brought it about. Where that lies in a wrapper, such as std::mutex::lock(), the stack is
 * gone up to the first function that is none. Only handlers that got a site that they do not know ask for this, so
 * programs without wrappers pay nothing for it.
 *
 * What is known of a return address fits into a word: the kind of its function and the way from its frame to the next. So
 * a table of words, filled by compare and swap, is all that is kept; a step up the stack costs a look at it.
 */
#include <dlfcn.h>

#include "writer/call_site.h"
#include "unwind.h"
#include "wrappers.h"

/* address:47 kind:2 by_frame_pointer:1 cfa:9 fp_below:5, the last two in words; cfa 0: no way up */
#define ADDRESS_MASK ((UINT64_C(1) << 47) - 1)
#define KIND_SHIFT 47
#define BY_FRAME_POINTER (UINT64_C(1) << 49)
#define CFA_SHIFT 50
#define CFA_MAX ((1u << 9) - 1)
#define FP_SHIFT 59
#define FP_MAX ((1u << 5) - 1)

#define WORD sizeof(uintptr_t)
#define KNOWN_BITS 13
#define KNOWN_COUNT (1u << KNOWN_BITS)
#define PROBES 8u
#define OWN_FRAMES_MAX 12 /* of tracer, handler, and the C library's where it calls back, below the program's */
#define WRAPPERS_MAX 40

static uint64_t known[KNOWN_COUNT];

static enum ptt_kind_of_code kind_of(uint64_t entry)
{
	return (enum ptt_kind_of_code)(entry >> KIND_SHIFT & 3);
}

static uint64_t pack(uintptr_t address, enum ptt_kind_of_code kind, const struct ptt_unwind_rule *rule)
{
	uint64_t entry = address | (uint64_t)kind << KIND_SHIFT;

	if (!rule || rule->cfa_offset / WORD > CFA_MAX || rule->fp_below / WORD > FP_MAX ||
	    rule->cfa_offset % WORD || rule->fp_below % WORD)
		return entry;
	return entry | (rule->by_frame_pointer ? BY_FRAME_POINTER : 0) | rule->cfa_offset / WORD << CFA_SHIFT |
	       rule->fp_below / WORD << FP_SHIFT;
}

/* The entry to be of a return address. */
static COLD uint64_t find_out(uintptr_t address)
{
	struct dl_find_object module;
	struct ptt_unwind_rule rule;

	/*
	 * The call lies before the address, which may belong to the next function already. What has no rule may be the first
	 * function of a thread, or code of which nothing is known.
	 */
	if (ptt_find_object((void *)(address - 1), &module) != 0 || !module.dlfo_link_map ||
	    !ptt_unwind_rule(module.dlfo_eh_frame, address - 1, &rule))
		return pack(address, PTT_CODE_LIBRARY, NULL);
	return pack(address, ptt_kind_of_code(&module, rule.function), &rule);
}

/* From where its hash points, @at. */
static __attribute__((noinline)) uint64_t search(uintptr_t address, uint32_t at)
{
	uint64_t entry, closing;
	uint32_t i;

	if (!address || address & ~ADDRESS_MASK)
		return 0;
	for (i = 0; i < PROBES; i++, at = (at + 1) % KNOWN_COUNT) {
		/* relaxed, all: the word is all there is */
		uint64_t found = __atomic_load_n(&known[at], __ATOMIC_RELAXED);

		if ((found & ADDRESS_MASK) == address)
			return found;
		if (!found)
			break;
	}
	closing = ptt_closing();
	entry = find_out(address);
	if (i < PROBES && ptt_is_settled(closing)) {
		uint64_t empty = 0;

		/* seq_cst: between the two looks at ptt_closing() */
		__atomic_compare_exchange_n(&known[at], &empty, entry, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
		if (ptt_closing() != closing)
			__atomic_store_n(&known[at], 0, __ATOMIC_RELAXED);
	}
	return entry;
}

/* What is known of a return address, or is now found out; 0 if it can be none. */
static inline uint64_t look(uintptr_t address)
{
	uint32_t at = (uint32_t)(address * UINT64_C(0x9e3779b97f4a7c15) >> (64 - KNOWN_BITS));
	/* relaxed: the word is all there is */
	uint64_t found = __atomic_load_n(&known[at], __ATOMIC_RELAXED);

	return likely((found & ADDRESS_MASK) == address) && found ? found : search(address, at);
}

struct frame {
	uintptr_t pc, sp, fp;
};

/* Go up to the caller, by what is known of the frame's return address. */
static inline __attribute__((always_inline, no_sanitize_address)) bool step(struct frame *f, uint64_t entry)
{
	uintptr_t size = (entry >> CFA_SHIFT & CFA_MAX) * WORD, fp_below = (entry >> FP_SHIFT) * WORD;
	uintptr_t cfa = (entry & BY_FRAME_POINTER ? f->fp : f->sp) + size;

	/* a frame that is not above the one before, or far above it, is none */
	if (!size || cfa <= f->sp || cfa - f->sp > 2 * CFA_MAX * WORD || cfa % WORD)
		return false;
	if (fp_below)
		f->fp = *(const uintptr_t *)(cfa - fp_below);
	f->pc = *(const uintptr_t *)(cfa - WORD);
	f->sp = cfa;
	return true;
}

/* Go up from the tracer's and the handler's own frames to the one that called the hook. */
static bool find_hook_caller(struct frame *f, uintptr_t site)
{
	int i;

	for (i = 0; i < OWN_FRAMES_MAX; i++) {
		if (f->pc == site)
			return true;
		if (!step(f, look(f->pc)))
			return false;
	}
	return false;
}

/*
 * Go up from a call in a wrapper to the program's. A thread may have none, as one that std::async() made; the outermost
 * wrapper that was compiled into the program then says more than the innermost.
 */
static void *find_program(struct frame *f, uint64_t entry)
{
	uintptr_t best = f->pc;
	int i;

	for (i = 0; i < WRAPPERS_MAX && step(f, entry); i++) {
		entry = look(f->pc);
		if (!entry)
			return (void *)best;
		if (kind_of(entry) == PTT_CODE_PROGRAM)
			return (void *)f->pc;
		if (kind_of(entry) == PTT_CODE_WRAPPER)
			best = f->pc;
	}
	return (void *)best;
}

/* Of the few calls from libraries: what stands behind this one is written in another language. */
static COLD bool is_foreign(void *site)
{
	struct dl_find_object found;
	const struct ptt_module *module = NULL;

	if (ptt_find_object((char *)site - 1, &found) == 0 && found.dlfo_link_map)
		module = ptt_module_of(&found);
	return module && module->foreign;
}

EXPORT __attribute__((noinline, no_sanitize_address)) void *__nptl_trace_outer_site(void *site)
{
	const uintptr_t *own = __builtin_frame_address(0);
	struct frame f = {.pc = own[1], .sp = (uintptr_t)(own + 2), .fp = own[0]};
	uint64_t entry = look((uintptr_t)site);

	if (!entry || kind_of(entry) == PTT_CODE_PROGRAM)
		return NULL;
	if (kind_of(entry) == PTT_CODE_LIBRARY)
		return is_foreign(site) ? PTT_NO_SITE : NULL;
	return find_hook_caller(&f, (uintptr_t)site) ? find_program(&f, entry) : site;
}

void ptt_forget_call_sites(void)
{
	uint32_t i;

	for (i = 0; i < KNOWN_COUNT; i++)
		if (__atomic_load_n(&known[i], __ATOMIC_RELAXED))
			__atomic_store_n(&known[i], 0, __ATOMIC_RELAXED);
}
