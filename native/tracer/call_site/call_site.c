/* SPDX-License-Identifier: MIT */
/* call_site.c - where a program calls the thread library, and the stack of calls that led there. */
/*
 * A hook knows the call that brought it about. Where that lies in a wrapper, such as std::mutex::lock(), the stack is
 * gone up to the first function that is none. Only handlers that got a site that they do not know ask for this, so
 * programs without wrappers pay nothing for it.
 *
 * What is known of a return address fits into a word: the kind of its function and the number of the rule that leads from
 * its frame to the next. So a table of words, filled by compare and swap, is all that is kept; a step up the stack costs a
 * look at it.
 */
#include <dlfcn.h>

#include "java_stack.h"
#include "python.h"
#include "reach.h"
#include "registers.h"
#include "rules.h"
#include "unwind.h"
#include "wrappers.h"
#include "layout/ptt_abi.h"
#include "origin/call_site.h"
#include "platform/missing.h"

/* address:47 kind:2 rule:15, or address:48 kind:2 rule:14 */
#define ADDRESS_MASK PTT_CODE_MASK
#define KIND_SHIFT PTT_CODE_BITS
#define RULE_SHIFT (PTT_CODE_BITS + 2)
_Static_assert(RULE_SHIFT + PTT_RULES_BITS == 64, "a word");

#define WORD sizeof(uintptr_t)
#define PROBES 8u
#define OWN_FRAMES_MAX 12 /* of tracer, handler, and the C library's where it calls back, below the program's */
#define WRAPPERS_MAX 40
#define PYTHON_STEPS_MAX 512 /* frames of C, most of which do not stay */

static enum ptt_kind_of_code kind_of(uint64_t entry)
{
	return (enum ptt_kind_of_code)(entry >> KIND_SHIFT & 3);
}

/* The module of a place in the code, and how to go up from there. */
static bool find_rule(uintptr_t pc, struct dl_find_object *module, struct ptt_unwind_rule *rule)
{
	struct ptt_unwind_table table;
	uintptr_t begin, end;

	if (ptt_find_object((void *)pc, module) != 0 || !module->dlfo_link_map)
		return false;
	ptt_module_extent(module, &begin, &end);
	table = ptt_unwind_module(module->dlfo_eh_frame, begin, end);
	/* the program may have taken away what it can do without */
	return table.header && ptt_can_read(table.header, WORD) && ptt_unwind_rule(&table, pc, rule);
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
	if (!find_rule(address - 1, &module, &rule))
		return address | (uint64_t)PTT_CODE_LIBRARY << KIND_SHIFT;
	return address | (uint64_t)ptt_kind_of_code(&module, rule.function) << KIND_SHIFT |
	       (uint64_t)ptt_rule_number(&rule) << RULE_SHIFT;
}

/* From where its hash points, @at. */
static __attribute__((noinline)) uint64_t search(uintptr_t address, uint32_t at)
{
	uint64_t entry, closing;
	uint32_t i;

	if (!address || address & ~ADDRESS_MASK)
		return 0;
	for (i = 0; i < PROBES; i++, at = (at + 1) % PTT_KNOWN_COUNT) {
		/* relaxed, all: the word is all there is */
		uint64_t found = __atomic_load_n(&ptt_known_sites[at], __ATOMIC_RELAXED);

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
		__atomic_compare_exchange_n(&ptt_known_sites[at], &empty, entry, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
		if (ptt_closing() != closing)
			__atomic_store_n(&ptt_known_sites[at], 0, __ATOMIC_RELAXED);
	}
	return entry;
}

/* What is known of a return address, or is now found out; 0 if it can be none. */
static inline uint64_t look(uintptr_t address)
{
	uint32_t at = (uint32_t)(address * UINT64_C(0x9e3779b97f4a7c15) >> (64 - PTT_KNOWN_BITS));
	/* relaxed: the word is all there is */
	uint64_t found = __atomic_load_n(&ptt_known_sites[at], __ATOMIC_RELAXED);

	return likely((found & ADDRESS_MASK) == address) && found ? found : search(address, at);
}

struct frame {
	uintptr_t pc, sp, fp;
	uintptr_t fp_at; /* the word that was read for it; 0: none, it goes with the frame that the walk begins in */
	struct ptt_reach reach;
	struct ptt_registers *all; /* of the last frame that it took all of them to leave */
	bool outermost;		   /* nothing called it */
};

/* Read the word that the frame pointer is in: it decides only what it is used for. */
static inline __attribute__((always_inline)) PTT_UNWATCHED bool peek_fp(struct frame *f, uintptr_t at, uintptr_t *fp)
{
	if (at % WORD || !ptt_reaches(&f->reach, at))
		return false;
	*fp = *(const uintptr_t *)at;
	f->fp_at = at;
	return true;
}

static inline uintptr_t use_fp(struct frame *f)
{
	if (f->fp_at)
		ptt_note_read(f->reach.read, f->fp_at, f->fp);
	return f->fp;
}

/*
 * Go up from the frame of the function that a signal handler returns to: the kernel has put a ucontext there. The code that
 * was interrupted is not at a return address, so the next one stands for it.
 */
static COLD PTT_UNWATCHED bool step_over_signal(struct frame *f)
{
	uintptr_t registers = f->sp + PTT_SIGNAL_REGISTERS, pc, sp, fp;

	if (!ptt_peek(&f->reach, registers + PTT_SIGNAL_PC * WORD, &pc) ||
	    !ptt_peek(&f->reach, registers + PTT_SIGNAL_SP * WORD, &sp) || !ptt_peek(&f->reach, registers + PTT_SIGNAL_FP * WORD, &fp))
		return false;
	/* whatever was interrupted may have been about to change what Python's frames are found by */
	ptt_read_unlisted(f->reach.read);
	f->pc = pc + 1;
	f->sp = sp;
	f->fp = fp;
	return true;
}

/* Go up from a frame that a rule is too small for. */
static COLD PTT_UNWATCHED bool step_by_row(struct frame *f)
{
	/* registers of now decide as well */
	ptt_read_unlisted(f->reach.read);
	if (!ptt_registers_leave(f->all, &f->reach, f->pc, f->sp))
		return false;
	f->pc = f->all->value[PTT_REG_RA];
	f->sp = f->all->value[PTT_REG_SP];
	f->fp = f->all->known >> PTT_REG_BP & 1 ? f->all->value[PTT_REG_BP] : 0;
	return true;
}

/* The word that it lies in, by a rule. */
static inline uintptr_t return_address_at(uint64_t rule, uintptr_t cfa)
{
#if defined(__aarch64__)
	return cfa + (uintptr_t)PTT_RULE_FP_OFFSET(rule) + WORD;
#else
	(void)rule; /* the call itself put it there */
	return cfa - WORD;
#endif
}

/* Go up to the caller, by what is known of the frame's return address. */
static inline __attribute__((always_inline)) PTT_UNWATCHED bool step(struct frame *f, uint64_t entry)
{
	uint64_t rule = ptt_rule(entry >> RULE_SHIFT);
	uintptr_t fp = f->fp, cfa;

	cfa = (PTT_RULE_CFA(rule) == PTT_CFA_SP ? f->sp : use_fp(f)) + (uintptr_t)PTT_RULE_CFA_OFFSET(rule);
	if (unlikely(PTT_RULE_CFA(rule) != PTT_CFA_SP && PTT_RULE_CFA(rule) != PTT_CFA_FP)) {
		f->outermost = PTT_RULE_CFA(rule) == PTT_CFA_OUTERMOST;
		if (PTT_RULE_CFA(rule) == PTT_CFA_SIGNAL)
			return step_over_signal(f);
		if (PTT_RULE_CFA(rule) == PTT_CFA_ROW)
			return step_by_row(f);
		if (PTT_RULE_CFA(rule) != PTT_CFA_FP_SAVED || !ptt_peek(&f->reach, cfa, &cfa))
			return false;
	}
	/* a frame that is not above the frame before is no frame */
	if (cfa <= f->sp)
		return false;
	if (PTT_RULE_FP(rule) != PTT_FP_SAME &&
	    !peek_fp(f, (PTT_RULE_FP(rule) == PTT_FP_BY_CFA ? cfa : use_fp(f)) + (uintptr_t)PTT_RULE_FP_OFFSET(rule), &fp))
		return false;
	if (!ptt_peek(&f->reach, return_address_at(rule, cfa), &f->pc))
		return false;
	f->pc = ptt_unsigned(f->pc);
	f->sp = cfa;
	f->fp = fp;
	return true;
}

/* Go up from the tracer's and the handler's own frames to the frame that called the hook. */
static PTT_UNWATCHED bool find_hook_caller(struct frame *f, uintptr_t site)
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
 * Go up from a call in a wrapper to the program's call. A thread may have no such call, as a thread that std::async() made; the
 * outermost wrapper that was compiled into the program then says more than the innermost.
 */
static PTT_UNWATCHED void *find_program(struct frame *f, uint64_t entry)
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

/* Where the way up begins, in the function that this stands in; @sp is the same for the same frame. */
#if defined(__aarch64__)
struct own {
	uintptr_t sp, pc, fp;
};

#define FIND_OWN(own) __asm__ volatile("mov %0, sp\n\tadr %1, 1f\n\tmov %2, x29\n1:" : "=r"((own)->sp), "=r"((own)->pc), "=r"((own)->fp))
#else
struct own {
	uintptr_t sp;
};

#define FIND_OWN(own) ((own)->sp = (uintptr_t)__builtin_frame_address(0))
#endif

/* The first frame of a walk: the frame of the function itself, or of its caller; @all: the way up keeps registers there. */
static inline PTT_UNWATCHED struct frame first_frame(struct own own, struct ptt_registers *all)
{
	struct frame f = {.reach = ptt_reach_from(own.sp), .all = all};

	all->known = 0;
#if defined(__aarch64__)
	/* only its table says how large it is */
	f.pc = own.pc;
	f.sp = own.sp;
	f.fp = own.fp;
#else
	f.fp_at = own.sp;
	f.fp = *(const uintptr_t *)own.sp;
	f.pc = *(const uintptr_t *)(own.sp + WORD);
	f.sp = own.sp + 2 * WORD;
#endif
	return f;
}

__attribute__((noinline)) PTT_UNWATCHED uint16_t ptt_site_futex(const void *site)
{
	struct ptt_registers all;
	struct dl_find_object module;
	struct ptt_unwind_rule rule;
	uint8_t best = 0, kind;
	uint64_t entry;
	struct frame f;
	struct own own;
	int i;

	FIND_OWN(&own);
	f = first_frame(own, &all);
	if (!find_hook_caller(&f, (uintptr_t)site))
		return 0;
	for (i = 0; i < WRAPPERS_MAX && find_rule(f.pc - 1, &module, &rule); i++) {
		kind = ptt_futex_kind(&module, rule.function);
		best = kind ? kind : best;
		if (kind && !ptt_futex_is_outer(kind))
			break;
		entry = look(f.pc);
		if ((kind_of(entry) != PTT_CODE_WRAPPER && kind_of(entry) != PTT_CODE_RUNTIME) || !step(&f, entry))
			break;
	}
	return best;
}

__attribute__((noinline)) PTT_UNWATCHED void *ptt_find_outer_site(void *site)
{
	uint64_t entry = look((uintptr_t)site);
	struct ptt_registers all;
	struct frame f;
	struct own own;

	if (!entry || kind_of(entry) == PTT_CODE_PROGRAM)
		return NULL;
	if (kind_of(entry) == PTT_CODE_LIBRARY)
		return is_foreign(site) ? PTT_NO_SITE : NULL;
	FIND_OWN(&own);
	f = first_frame(own, &all);
	return find_hook_caller(&f, (uintptr_t)site) ? find_program(&f, entry) : site;
}

/*
 * The same where an interpreter of Python is in the program: the functions of Python stand in place of the interpreter's, but not in
 * place of functions that the innermost function of Python has called. Return: 0 if the functions and the frames do not fit.
 */
static inline PTT_UNWATCHED uint32_t walk_with_python(struct frame f, struct ptt_words_read *read, uint64_t *frame, uint32_t room,
						       bool *whole, ptt_number_python_code *number)
{
	bool more = true, seen = false;
	struct ptt_python p;
	uint32_t n = 0, i;

	if (!ptt_python_begin(&p, &f.reach, read))
		return 0;
	for (i = 0; i < PYTHON_STEPS_MAX && more && n < room && !p.bad; i++) {
		uintptr_t pc = f.pc, low = f.sp;
		uint64_t entry = look(pc);

		if (!entry)
			break;
		more = step(&f, entry);
		if (more && ptt_python_is_run_by(&p, low, f.sp, pc)) {
			n += ptt_python_run(&p, frame + n, room - n, number);
			seen = true;
		} else if (!seen || !ptt_python_has(pc)) {
			frame[n++] = pc;
		}
	}
	*whole = !more && f.outermost;
	/* where nothing called the last function, all calls of the interpreter were come to */
	p.bad = p.bad || (*whole && p.frame);
	while (p.frame && !p.bad && n < room)
		n += ptt_python_run(&p, frame + n, room - n, number);
	return p.bad ? 0 : n;
}

static inline PTT_UNWATCHED uint32_t walk(struct frame f, uint64_t *frame, uint32_t room, bool *whole)
{
	uint32_t n = 0;

	while (n < room) {
		uint64_t entry = look(f.pc);

		if (!entry)
			break;
		frame[n++] = f.pc;
		if (!step(&f, entry)) {
			*whole = f.outermost;
			break;
		}
	}
	return n;
}

/* The words that the walk of a stack reads. */
struct words {
	struct ptt_words_read of_c, of_python;
};

/* @kept: where to, or NULL */
static inline PTT_UNWATCHED void list_words(struct words *words, struct ptt_remembered_stack *kept, struct frame *f)
{
	if (!kept)
		return;
	words->of_c = (struct ptt_words_read){.word = kept->of_c, .room = PTT_REMEMBERED_WORDS_OF_C};
	words->of_python = (struct ptt_words_read){.word = kept->of_python, .room = PTT_REMEMBERED_WORDS_OF_PYTHON};
	f->reach.read = &words->of_c;
#if !defined(__aarch64__)
	ptt_note_read(&words->of_c, f->sp - WORD, f->pc);
#endif
}

/* Only words on the thread's own stack are there as long as the words below them. */
static bool can_remember(const struct words *words, const struct ptt_reach *reach)
{
	uint32_t i;

	if (words->of_c.count > words->of_c.room || words->of_python.count > words->of_python.room)
		return false;
	for (i = 0; i < words->of_c.count; i++)
		if (words->of_c.word[i].at < reach->low || words->of_c.word[i].at >= reach->high)
			return false;
	return true;
}

static uint32_t remember(struct ptt_remembered_stack *kept, const struct words *words, const struct ptt_reach *reach, uint32_t number)
{
	if (kept && can_remember(words, reach)) {
		kept->words_of_c = words->of_c.count;
		kept->words_of_python = words->of_python.count;
		kept->number = number;
	}
	return number;
}

static __attribute__((noinline)) PTT_UNWATCHED uint32_t number_of_c(struct own own, uintptr_t site,
								    const struct ptt_stack_wanted *wanted,
								    struct ptt_remembered_stack *kept)
{
	struct ptt_registers all;
	struct frame f = first_frame(own, &all);
	uint64_t frame[PTT_STACK_DEPTH_MAX];
	bool whole = false;
	struct words words;
	uint32_t n;

	list_words(&words, kept, &f);
	if (!find_hook_caller(&f, site))
		return 0;
	n = walk(f, frame, wanted->room, &whole);
	return n ? remember(kept, &words, &f.reach, wanted->number(frame, n, whole)) : 0;
}

static __attribute__((noinline)) PTT_UNWATCHED uint32_t number_with_python(struct own own, uintptr_t site,
									   const struct ptt_stack_wanted *wanted,
									   struct ptt_remembered_stack *kept)
{
	uint64_t frame[PTT_STACK_DEPTH_MAX];
	struct ptt_registers all;
	struct frame f = first_frame(own, &all);
	bool whole = false;
	struct words words;
	uint32_t n;

	list_words(&words, kept, &f);
	if (!find_hook_caller(&f, site))
		return 0;
	n = walk_with_python(f, kept ? &words.of_python : NULL, frame, wanted->room, &whole, wanted->python);
	if (!n)
		return number_of_c(own, site, wanted, NULL);
	return remember(kept, &words, &f.reach, wanted->number(frame, n, whole));
}

static inline bool has_python(const struct ptt_stack_wanted *wanted)
{
	return ptt_has_python && wanted->python;
}

/* @kept: where to remember it, or NULL */
static uint32_t number_anew(struct own own, uintptr_t site, const struct ptt_stack_wanted *wanted, struct ptt_remembered_stack *kept)
{
	return unlikely(has_python(wanted)) ? number_with_python(own, site, wanted, kept) : number_of_c(own, site, wanted, kept);
}

/* Are all words that a stack was found by as they were? In this order none is read that the walk would not come to. */
static PTT_UNWATCHED bool holds(const struct ptt_remembered_stack *kept)
{
	uint32_t i;

	for (i = 0; i < kept->words_of_c; i++)
		if (*(const uintptr_t *)kept->of_c[i].at != kept->of_c[i].value)
			return false;
	if (unlikely(kept->state) && ptt_python_state() != kept->state)
		return false;
	for (i = 0; i < kept->words_of_python; i++)
		if (*(const uintptr_t *)kept->of_python[i].at != kept->of_python[i].value)
			return false;
	return true;
}

/* The number that is remembered; else the stack is walked, and its number remembered. Own frames are the same each time. */
static uint32_t number_by_memory(struct own own, uintptr_t site, const struct ptt_stack_wanted *wanted,
				 struct ptt_remembered_stack *kept)
{
	uintptr_t thread = (uintptr_t)ptt_thread_pointer();
	uint64_t closing = ptt_closing();
	uint32_t number;

	if (kept->number && kept->frame == own.sp && kept->thread == thread && kept->site == site &&
	    kept->session == wanted->session && kept->closing == closing && holds(kept))
		return kept->number;
	kept->number = 0;
	kept->frame = own.sp;
	kept->thread = thread;
	kept->site = site;
	kept->session = wanted->session;
	kept->closing = closing;
	kept->state = has_python(wanted) ? ptt_python_state() : 0; /* without which none with Python is remembered */
	number = number_anew(own, site, wanted, kept);
	if (!ptt_is_settled(closing) || ptt_closing() != closing)
		kept->number = 0;
	return number;
}

__attribute__((noinline)) uint32_t __nptl_trace_stack(void *site, const struct ptt_stack_wanted *wanted)
{
	struct ptt_remembered_stack *kept;
	uint32_t number;
	struct own own;

	FIND_OWN(&own);
	if (unlikely(ptt_java_now) && ptt_java_now->site == site)
		return ptt_java_stack(wanted);
	kept = &wanted->remembered[(own.sp ^ (uintptr_t)site) * UINT64_C(0x9e3779b97f4a7c15) >> 56];
	_Static_assert(PTT_REMEMBERED_STACKS == 256, "eight bits of the hash");
	/* acquire: pairs with the release below. A signal handler may have interrupted its holder. */
	if (__atomic_exchange_n(&kept->busy, 1, __ATOMIC_ACQUIRE))
		return number_anew(own, (uintptr_t)site, wanted, NULL);
	number = number_by_memory(own, (uintptr_t)site, wanted, kept);
	/* release: the next thread that has it sees it whole */
	__atomic_store_n(&kept->busy, 0, __ATOMIC_RELEASE);
	return number;
}
