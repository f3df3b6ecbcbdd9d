/* SPDX-License-Identifier: MIT */
/* call_site.c - the place where a program calls the thread library, and the stack of calls. */
/*
 * A hook knows its own return address. If that address lies in a wrapper, such as std::mutex::lock(), a walk goes up
 * the stack to the first function that is no wrapper. Handlers ask for the walk only for an unknown site, so programs
 * without wrappers pay nothing for it.
 *
 * The facts about a return address fit into a word: the kind of its function, and the number of the rule for the step
 * to the caller's frame. So the cache is a table of words, filled by compare and swap. A step up the stack costs one
 * look-up.
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
#define OWN_FRAMES_MAX 12 /* frames of the tracer, the handler, and of callbacks of the C library, below the program's frames */
#define WRAPPERS_MAX 40
#define PYTHON_STEPS_MAX 512 /* frames of C; Python frames replace most of them */
#define SIGNAL_STEPS_MAX 512

static enum ptt_kind_of_code kind_of(uint64_t entry)
{
	return (enum ptt_kind_of_code)(entry >> KIND_SHIFT & 3);
}

/* The module at a code address, and the rule for the step to the caller. */
static bool find_rule(uintptr_t pc, struct dl_find_object *module, struct ptt_unwind_rule *rule)
{
	struct ptt_unwind_table table;
	uintptr_t begin, end;

	if (ptt_find_object((void *)pc, module) != 0 || !module->dlfo_link_map)
		return false;
	ptt_module_extent(module, &begin, &end);
	table = ptt_unwind_module(module->dlfo_eh_frame, begin, end);
	/* the program may have unmapped its tables */
	return table.header && ptt_can_read(table.header, WORD) && ptt_unwind_rule(&table, pc, rule);
}

/* A new entry for a return address. */
static COLD uint64_t make_entry(uintptr_t address)
{
	struct dl_find_object module;
	struct ptt_unwind_rule rule;

	/*
	 * The call lies before the address; the address itself may belong to the next function. Code without a rule
	 * is the first function of a thread, or unknown code.
	 */
	if (!find_rule(address - 1, &module, &rule))
		return address | (uint64_t)PTT_CODE_LIBRARY << KIND_SHIFT;
	return address | (uint64_t)ptt_kind_of_code(&module, rule.function) << KIND_SHIFT |
	       (uint64_t)ptt_rule_number(&rule) << RULE_SHIFT;
}

/* @at: the first place to look at, by the hash */
static __attribute__((noinline)) uint64_t search(uintptr_t address, uint32_t at)
{
	uint64_t entry, closing;
	uint32_t i;

	if (!address || address & ~ADDRESS_MASK)
		return 0;
	for (i = 0; i < PROBES; i++, at = (at + 1) % PTT_KNOWN_COUNT) {
		/* relaxed, all: an entry is one word, and no other data depends on it */
		entry = __atomic_load_n(&ptt_known_sites[at], __ATOMIC_RELAXED);
		if ((entry & ADDRESS_MASK) == address)
			return entry;
		if (!entry)
			break;
	}
	closing = ptt_closing();
	entry = make_entry(address);
	if (i < PROBES && ptt_is_settled(closing)) {
		uint64_t empty = 0;

		/* seq_cst: ordered between the two loads in ptt_closing(); pairs with ptt_begin_closing() */
		__atomic_compare_exchange_n(&ptt_known_sites[at], &empty, entry, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
		if (ptt_closing() != closing)
			__atomic_store_n(&ptt_known_sites[at], 0, __ATOMIC_RELAXED);
	}
	return entry;
}

/* The entry of a return address, made if it is new; 0 if the address cannot be a return address. */
static inline uint64_t look(uintptr_t address)
{
	uint32_t at = (uint32_t)(address * UINT64_C(0x9e3779b97f4a7c15) >> (64 - PTT_KNOWN_BITS));
	/* relaxed: an entry is one word, and no other data depends on it */
	uint64_t entry = __atomic_load_n(&ptt_known_sites[at], __ATOMIC_RELAXED);

	return likely((entry & ADDRESS_MASK) == address) && entry ? entry : search(address, at);
}

struct frame {
	uintptr_t pc, sp, fp;
	uintptr_t fp_at; /* address of the word that fp was read from; 0: fp is of the first frame */
	struct ptt_reach reach;
	struct ptt_registers *all; /* of the last frame that needed all registers */
	bool outermost;		   /* nothing called the function */
};

/* Read a saved frame pointer. The word is listed only when the walk uses it: see use_fp(). */
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
 * Step from the frame of the signal trampoline, where the kernel put a ucontext. The interrupted code is not at a
 * return address, so the address behind its program counter stands for it.
 */
static COLD PTT_UNWATCHED bool step_over_signal(struct frame *f)
{
	uintptr_t registers = f->sp + PTT_SIGNAL_REGISTERS, pc, sp, fp;

	if (!ptt_peek(&f->reach, registers + PTT_SIGNAL_PC * WORD, &pc) ||
	    !ptt_peek(&f->reach, registers + PTT_SIGNAL_SP * WORD, &sp) || !ptt_peek(&f->reach, registers + PTT_SIGNAL_FP * WORD, &fp))
		return false;
	/* the interrupted code may have been changing the words that lead to Python's frames */
	ptt_read_unlisted(f->reach.read);
	f->pc = pc + 1;
	f->sp = sp;
	f->fp = fp;
	return true;
}

/* Step from a frame that a rule cannot express. */
static COLD PTT_UNWATCHED bool step_by_row(struct frame *f)
{
	/* present registers decide the walk, too */
	ptt_read_unlisted(f->reach.read);
	if (!ptt_registers_leave(f->all, &f->reach, f->pc, f->sp))
		return false;
	f->pc = f->all->value[PTT_REG_RA];
	f->sp = f->all->value[PTT_REG_SP];
	f->fp = f->all->known >> PTT_REG_BP & 1 ? f->all->value[PTT_REG_BP] : 0;
	return true;
}

/* The address of the word with the return address, by a rule. */
static inline uintptr_t return_address_at(uint64_t rule, uintptr_t cfa)
{
#if defined(__aarch64__)
	return cfa + (uintptr_t)PTT_RULE_FP_OFFSET(rule) + WORD;
#else
	(void)rule; /* the call instruction pushed it */
	return cfa - WORD;
#endif
}

/* Step to the caller, by the entry of the frame's return address. */
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
	/* a caller's frame must lie above */
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

/* Go up from the frames of the tracer and the handler to the frame that called the hook. */
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
 * Go up from a call in a wrapper to the program's call. A thread may have no such call, as a thread that std::async()
 * made. Then the outermost wrapper in the program's modules says more than the innermost.
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

/* For a call from a library: is the caller written in another language? */
static COLD bool is_foreign(void *site)
{
	struct dl_find_object object;
	const struct ptt_module *module = NULL;

	if (ptt_find_object((char *)site - 1, &object) == 0 && object.dlfo_link_map)
		module = ptt_module_of(&object);
	return module && module->foreign;
}

/* The registers of the function that a walk begins in; @sp is the same for the same frame. */
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

/* The first frame of a walk: the frame of the function (aarch64), or of its caller; @all: memory for registers of the walk */
static inline PTT_UNWATCHED struct frame first_frame(struct own own, struct ptt_registers *all)
{
	struct frame f = {.reach = ptt_reach_from(own.sp), .all = all};

	all->known = 0;
#if defined(__aarch64__)
	/* only the unwind table says how large the frame is */
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

__attribute__((noinline)) PTT_UNWATCHED bool ptt_is_in_signal_handler(const void *site)
{
	struct ptt_registers all;
	uint64_t entry;
	struct frame f;
	struct own own;
	int i;

	FIND_OWN(&own);
	f = first_frame(own, &all);
	if (!find_hook_caller(&f, (uintptr_t)site))
		return false;
	for (i = 0; i < SIGNAL_STEPS_MAX; i++) {
		entry = look(f.pc);
		if (entry && PTT_RULE_CFA(ptt_rule(entry >> RULE_SHIFT)) == PTT_CFA_SIGNAL)
			return true;
		if (!entry || !step(&f, entry))
			return false;
	}
	return false;
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
 * As walk(), in a program with a Python interpreter: functions of Python replace the functions of the interpreter,
 * but not the functions that the innermost function of Python called. Return: 0 if functions and frames do not match.
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
	/* the walk reached the outermost function, so no call of the interpreter may be left */
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

/* The words that a walk reads. */
struct words {
	struct ptt_words_read of_c, of_python;
};

/* @kept: memory for the list, or NULL */
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

/* Are all words on the thread's own stack? Only those stay mapped while the words below them are there. */
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

/* ------------------------------------------------------------ places in programs of Python */

#define PLACE_FRAMES_MAX 16u
#define PLACE_BASIS 2166136261u

static uint32_t mix_32(uint32_t hash, uint32_t value)
{
	for (uint32_t i = 0; i < 4; i++)
		/* FNV-1a, by Fowler, Noll and Vo */
		hash = (hash ^ (value >> 8 * i & 0xff)) * 16777619u;
	return hash;
}

static PTT_UNWATCHED uint32_t character(const struct ptt_python_text *text, size_t i)
{
	return text->width == 1 ? ((const uint8_t *)text->at)[i] :
	       text->width == 2 ? ((const uint16_t *)text->at)[i] :
				  ((const uint32_t *)text->at)[i];
}

/* The number of a code object: its low bit says that it is a function of threading.py. */
static PTT_UNWATCHED uint32_t number_of_function(struct ptt_python_code *code)
{
	static const char threading[] = "threading.py";
	size_t i, begin = 0, size;
	uint32_t hash = PLACE_BASIS;
	bool same;

	if (!code->describe(code))
		return 0;
	size = code->file.size / code->file.width;
	for (i = 0; i < size; i++)
		if (character(&code->file, i) == '/')
			begin = i + 1;
	same = size - begin == sizeof(threading) - 1;
	for (i = begin; i < size; i++) {
		hash = mix_32(hash, character(&code->file, i));
		same = same && character(&code->file, i) == (uint8_t)threading[i - begin];
	}
	for (i = 0; i < code->name.size / code->name.width; i++)
		hash = mix_32(hash, character(&code->name, i));
	hash = mix_32(hash, code->first_line) & 0xfffffe;
	return (hash ? hash : 2) | same;
}

static uint32_t number_of_place(const uint64_t *frame, uint32_t count, bool whole)
{
	(void)whole;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t place = frame[i] - PTT_PYTHON_PLACE;

		if (place < PTT_PYTHON_PLACE_END - PTT_PYTHON_PLACE && !(place >> PTT_PYTHON_SHIFT & 1))
			return mix_32(mix_32(PLACE_BASIS, (uint32_t)place), (uint32_t)(place >> 32));
	}
	return 0;
}

__attribute__((noinline)) PTT_UNWATCHED uint32_t ptt_python_place(void *site)
{
	const struct ptt_stack_wanted wanted = {.room = PLACE_FRAMES_MAX, .number = number_of_place, .python = number_of_function};
	struct own own;

	if (!ptt_has_python)
		return 0;
	FIND_OWN(&own);
	return number_with_python(own, (uintptr_t)site, &wanted, NULL);
}

static inline bool has_python(const struct ptt_stack_wanted *wanted)
{
	return ptt_has_python && wanted->python;
}

/* @kept: memory to remember the stack, or NULL */
static uint32_t number_anew(struct own own, uintptr_t site, const struct ptt_stack_wanted *wanted, struct ptt_remembered_stack *kept)
{
	return unlikely(has_python(wanted)) ? number_with_python(own, site, wanted, kept) : number_of_c(own, site, wanted, kept);
}

/*
 * Do all words that led to a stack have the same values? The order is the same as in the walk, so no word is read that the
 * walk would not read.
 */
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

/* The remembered number; else walk the stack and remember its number. The tracer's own frames are the same each time. */
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
	kept->state = has_python(wanted) ? ptt_python_state() : 0; /* 0: with Python, the stack is not remembered */
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
	/*
	 * acquire: pairs with the release below. In a signal handler, the interrupted code may hold the entry: do not
	 * wait.
	 */
	if (__atomic_exchange_n(&kept->busy, 1, __ATOMIC_ACQUIRE))
		return number_anew(own, (uintptr_t)site, wanted, NULL);
	number = number_by_memory(own, (uintptr_t)site, wanted, kept);
	/* release: pairs with the acquire above; the entry is complete */
	__atomic_store_n(&kept->busy, 0, __ATOMIC_RELEASE);
	return number;
}
