/* SPDX-License-Identifier: MIT */
/* unwind.c - reads unwind tables: .eh_frame_hdr and .eh_frame, DWARF call frame information (DWARF 5, 6.4; LSB 5, 10.6). */
/*
 * The reader understands the common subset: tables with 32-bit entries, a CFA at an offset from the stack or frame
 * pointer or saved beside the frame pointer, and registers saved at fixed places. A CFA at an offset from another
 * register has a row, but no rule. For anything else, and for a damaged table, the answer is that there is no row.
 * The reader reads no byte outside the table, and no entry twice.
 */
#include <stddef.h>
#include <string.h>

#include "unwind.h"

/* Encodings of pointers (DW_EH_PE_*): the low half is the format, the high half the base. */
#define PE_FORMAT 0x0f
#define PE_ABSPTR 0x00
#define PE_UDATA2 0x02
#define PE_UDATA4 0x03
#define PE_UDATA8 0x04
#define PE_SDATA2 0x0a
#define PE_SDATA4 0x0b
#define PE_SDATA8 0x0c
#define PE_ALIGNED 0x50
#define PE_SIGNED 0x08
#define PE_BASE 0x70
#define PE_FROM_HERE 0x10
#define PE_FROM_TABLE 0x30

/* Instructions (DW_CFA_*). The first three have an operand in their low six bits. */
enum {
	CFA_ADVANCE_LOC = 0x40,
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
	CFA_NOP = 0x00,
	CFA_ADVANCE_LOC1 = 0x02,
	CFA_ADVANCE_LOC2 = 0x03,
	CFA_ADVANCE_LOC4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER_STATE = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_NEGATE_RA_STATE = 0x2d, /* aarch64: from here on the return address is signed, or no longer signed */
	CFA_GNU_ARGS_SIZE = 0x2e,
};

/* Operations of expressions (DW_OP_*; DWARF 5, 2.5). */
enum {
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08,
	OP_CONST1S = 0x09,
	OP_AND = 0x1a,
	OP_MINUS = 0x1c,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_SHL = 0x24,
	OP_GE = 0x2a,
	OP_LIT0 = 0x30,
	OP_BREG0 = 0x70,
	OP_REG_COUNT = 32,
};

const struct ptt_processor ptt_x86_64 = {.sp = 7, .fp = 6, .ra = 16, .ra_is_pc = true};
const struct ptt_processor ptt_aarch64 = {.sp = 31, .fp = 29, .ra = 30};

/* ------------------------------------------------------------ bytes */

struct bytes {
	const uint8_t *at, *end;
	bool bad; /* a read went past the end, or an encoding is unknown */
};

static bool lies_in(const struct ptt_unwind_table *table, const uint8_t *at, uint64_t size)
{
	return at >= table->from && at <= table->end && (uint64_t)(table->end - at) >= size;
}

static uint64_t take(struct bytes *b, size_t size)
{
	uint64_t value = 0;

	if ((size_t)(b->end - b->at) < size) {
		b->bad = true;
		b->at = b->end;
		return 0;
	}
	memcpy(&value, b->at, size);
	b->at += size;
	return value;
}

/* A LEB128 number; @bits: how many bits it has. */
static uint64_t take_leb(struct bytes *b, unsigned int *bits)
{
	uint64_t value = 0, byte;

	*bits = 0;
	do {
		byte = take(b, 1);
		if (*bits < 64)
			value |= (byte & 0x7f) << *bits;
		*bits += 7;
	} while (byte & 0x80);
	return value;
}

static uint64_t take_uleb(struct bytes *b)
{
	unsigned int bits;

	return take_leb(b, &bits);
}

static int64_t take_sleb(struct bytes *b)
{
	unsigned int bits;
	uint64_t value = take_leb(b, &bits);

	if (bits < 64 && value >> (bits - 1))
		value |= ~UINT64_C(0) << bits;
	return (int64_t)value;
}

static void skip(struct bytes *b, uint64_t size)
{
	if ((uint64_t)(b->end - b->at) < size)
		b->bad = true;
	else
		b->at += size;
}

/* Bytes of a pointer of this encoding; 0: unknown. */
static size_t pointer_size(uint8_t encoding)
{
	if (encoding == PE_ALIGNED)
		return 0;
	switch (encoding & PE_FORMAT) {
	case PE_UDATA2:
	case PE_SDATA2:
		return 2;
	case PE_UDATA4:
	case PE_SDATA4:
		return 4;
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		return 8;
	}
	return 0;
}

/* ------------------------------------------------------------ entries */

/* A common information entry (CIE): the fields that its frame description entries (FDE) need. */
struct common {
	uint64_t code_unit;
	int64_t data_unit;
	uint8_t encoding; /* of the addresses in the FDEs */
	bool augmented;	  /* the FDEs have augmentation data, with a length */
	bool signal;	  /* a signal frame, made by the kernel */
	struct bytes program;
};

/* An entry begins with its length. Tables with 32-bit entries do not use the long form. */
static bool open_entry(const struct ptt_unwind_table *table, const uint8_t *at, struct bytes *entry)
{
	uint32_t length;

	if (!lies_in(table, at, sizeof(length)))
		return false;
	memcpy(&length, at, sizeof(length));
	if (!length || length >= 0xfffffff0 || !lies_in(table, at + sizeof(length), length))
		return false;
	*entry = (struct bytes){.at = at + sizeof(length), .end = at + sizeof(length) + length};
	return true;
}

static bool read_augmentation(struct bytes *b, const char *letter, struct common *c)
{
	for (; *letter; letter++) {
		uint8_t encoding;

		switch (*letter) {
		case 'R':
			c->encoding = (uint8_t)take(b, 1);
			break;
		case 'L':
			take(b, 1);
			break;
		case 'P':
			encoding = (uint8_t)take(b, 1);
			if (!pointer_size(encoding))
				return false;
			skip(b, pointer_size(encoding));
			break;
		case 'S':
			c->signal = true;
			break;
		case 'B': /* aarch64: which key signs return addresses */
		case 'G': /* aarch64: tags of stack memory */
			break;
		default:
			return false;
		}
	}
	return true;
}

static bool read_common(const struct ptt_unwind_table *table, const uint8_t *at, struct common *c)
{
	struct bytes b, more;
	const char *letters;
	uint64_t version;

	if (!open_entry(table, at, &b) || take(&b, 4) != 0)
		return false;
	version = take(&b, 1);
	letters = (const char *)b.at;
	while (take(&b, 1))
		;
	if (b.bad)
		return false;
	c->code_unit = take_uleb(&b);
	c->data_unit = take_sleb(&b);
	if ((version == 1 ? take(&b, 1) : take_uleb(&b)) != table->processor->ra || b.bad)
		return false;
	c->encoding = PE_ABSPTR;
	c->signal = false;
	c->augmented = *letters == 'z';
	if (c->augmented) {
		uint64_t size = take_uleb(&b);

		more = b;
		skip(&b, size);
		if (b.bad || !read_augmentation(&more, letters + 1, c))
			return false;
	} else if (*letters) {
		return false;
	}
	c->program = b;
	return !b.bad;
}

/* ------------------------------------------------------------ programs */

/* A row under construction. The reader runs on stacks of signal handlers, so each place takes only four bytes. */
struct state {
	int64_t cfa_offset;
	uint32_t cfa, cfa_register;
	struct {
		int32_t offset : 29;
		uint32_t how : 3; /* enum ptt_how */
	} place[PTT_PLACE_COUNT];
};

struct machine {
	const struct ptt_processor *processor;
	const struct common *common;
	struct state row, initial;
	struct state saved[4];
	unsigned int depth;
	uintptr_t location;
	uintptr_t pc; /* the address that the row is for */
};

static void set_place(struct state *row, uint64_t reg, enum ptt_how how, int64_t offset)
{
	const int64_t max = (INT64_C(1) << 28) - 1;
	bool fits = offset >= -max && offset <= max;

	if (reg >= PTT_PLACE_COUNT)
		return;
	row->place[reg].how = (fits ? how : PTT_PLACE_UNKNOWN) & 7;
	row->place[reg].offset = fits ? (int32_t)offset : 0;
}

/* Real offsets are small; a product that overflows comes from a damaged table. */
static int64_t in_bytes(const struct machine *m, int64_t units)
{
	int64_t bytes;

	return __builtin_mul_overflow(units, m->common->data_unit, &bytes) ? INT64_MAX : bytes;
}

static void set_saved(struct machine *m, uint64_t reg, int64_t units)
{
	set_place(&m->row, reg, PTT_PLACE_BY_CFA, in_bytes(m, units));
}

static void set_unsaved(struct machine *m, uint64_t reg)
{
	if (reg < PTT_PLACE_COUNT)
		m->row.place[reg] = m->initial.place[reg];
}

static void set_cfa_register(struct machine *m, uint64_t reg)
{
	const struct ptt_processor *p = m->processor;

	m->row.cfa = reg == p->sp ? PTT_CFA_SP : reg == p->fp ? PTT_CFA_FP : reg < p->ra ? PTT_CFA_ROW : PTT_CFA_UNKNOWN;
	m->row.cfa_register = (uint32_t)reg;
}

/* ------------------------------------------------------------ expressions */

/* A symbolic value: a number, an offset from a register of the frame, or the word at that offset. */
struct value {
	enum { NO_VALUE, NUMBER, ABOVE_SP, ABOVE_FP, AT_FP } what;
	int64_t number;
};

#define VALUES_MAX 8u

static void combine(struct bytes *b, uint8_t op, struct value *left, const struct value *right)
{
	bool numbers = left->what == NUMBER && right->what == NUMBER;
	uint64_t a = (uint64_t)left->number, c = (uint64_t)right->number;

	if (op == OP_PLUS && (left->what == NUMBER || right->what == NUMBER) && left->what != AT_FP && right->what != AT_FP)
		*left = (struct value){left->what == NUMBER ? right->what : left->what, (int64_t)(a + c)};
	else if (op == OP_MINUS && right->what == NUMBER && left->what != AT_FP)
		left->number = (int64_t)(a - c);
	else if (op == OP_AND && numbers)
		left->number = (int64_t)(a & c);
	else if (op == OP_SHL && numbers && c < 64)
		left->number = (int64_t)(a << c);
	else if (op == OP_GE && numbers)
		left->number = left->number >= right->number;
	else
		b->bad = true;
}

static struct value above_register(const struct machine *m, struct bytes *b, uint64_t reg)
{
	int64_t offset = take_sleb(b);

	if (reg == m->processor->sp)
		return (struct value){ABOVE_SP, offset};
	if (reg == m->processor->fp)
		return (struct value){ABOVE_FP, offset};
	/* the program counter, as in the entries of PLT stubs */
	if (reg == m->processor->ra && m->processor->ra_is_pc)
		return (struct value){NUMBER, (int64_t)(m->pc + (uint64_t)offset)};
	b->bad = true;
	return (struct value){0};
}

/* The value of an expression; NO_VALUE if it is not among the few that compilers and linkers write. */
static struct value evaluate(const struct machine *m, struct bytes *program)
{
	uint64_t size = take_uleb(program);
	struct bytes b = *program;
	struct value value[VALUES_MAX];
	unsigned int n = 0;

	skip(program, size);
	if (program->bad)
		return (struct value){0};
	b.end = program->at;
	while (b.at < b.end && !b.bad) {
		uint8_t op = (uint8_t)take(&b, 1);

		if (op >= OP_LIT0 && op < OP_LIT0 + OP_REG_COUNT && n < VALUES_MAX)
			value[n++] = (struct value){NUMBER, op - OP_LIT0};
		else if (op >= OP_BREG0 && op < OP_BREG0 + OP_REG_COUNT && n < VALUES_MAX)
			value[n++] = above_register(m, &b, op - OP_BREG0);
		else if (op == OP_CONST1U && n < VALUES_MAX)
			value[n++] = (struct value){NUMBER, (int64_t)take(&b, 1)};
		else if (op == OP_CONST1S && n < VALUES_MAX)
			value[n++] = (struct value){NUMBER, (int8_t)take(&b, 1)};
		else if (op == OP_DEREF && n && value[n - 1].what == ABOVE_FP)
			value[n - 1].what = AT_FP;
		else if (op == OP_PLUS_UCONST && n && value[n - 1].what != AT_FP)
			value[n - 1].number = (int64_t)((uint64_t)value[n - 1].number + take_uleb(&b));
		else if (n >= 2) {
			combine(&b, op, &value[n - 2], &value[n - 1]);
			n--;
		} else {
			b.bad = true;
		}
	}
	return b.bad || n != 1 ? (struct value){0} : value[0];
}

static void set_cfa_expression(struct machine *m, struct bytes *b)
{
	static const enum ptt_cfa cfa[] = {
		[NO_VALUE] = PTT_CFA_UNKNOWN, [NUMBER] = PTT_CFA_UNKNOWN, [ABOVE_SP] = PTT_CFA_SP, [ABOVE_FP] = PTT_CFA_FP, [AT_FP] = PTT_CFA_FP_SAVED};
	struct value value = evaluate(m, b);

	m->row.cfa = cfa[value.what];
	m->row.cfa_register = value.what == ABOVE_SP ? m->processor->sp : m->processor->fp;
	m->row.cfa_offset = value.number;
}

static void set_saved_by_expression(struct machine *m, struct bytes *b)
{
	uint64_t reg = take_uleb(b);
	struct value value = evaluate(m, b);

	set_place(&m->row, reg, value.what == ABOVE_FP ? PTT_PLACE_BY_FP : PTT_PLACE_UNKNOWN, value.number);
}

/* ------------------------------------------------------------ instructions */

static void push_row(struct machine *m, struct bytes *b)
{
	if (m->depth == sizeof(m->saved) / sizeof(m->saved[0]))
		b->bad = true;
	else
		m->saved[m->depth++] = m->row;
}

static void pop_row(struct machine *m, struct bytes *b)
{
	if (!m->depth)
		b->bad = true;
	else
		m->row = m->saved[--m->depth];
}

static void run_extended(struct machine *m, struct bytes *b, uint8_t code)
{
	struct state *row = &m->row;
	uint64_t reg;

	switch (code) {
	case CFA_NOP:
	case CFA_NEGATE_RA_STATE:
		break;
	case CFA_OFFSET_EXTENDED:
		reg = take_uleb(b);
		set_saved(m, reg, (int64_t)take_uleb(b));
		break;
	case CFA_OFFSET_EXTENDED_SF:
		reg = take_uleb(b);
		set_saved(m, reg, take_sleb(b));
		break;
	case CFA_RESTORE_EXTENDED:
		set_unsaved(m, take_uleb(b));
		break;
	case CFA_SAME_VALUE:
		set_place(row, take_uleb(b), PTT_PLACE_SAME, 0);
		break;
	case CFA_UNDEFINED: /* e.g. the return address of the first function of a thread */
		set_place(row, take_uleb(b), PTT_PLACE_NOWHERE, 0);
		break;
	case CFA_REGISTER:
		reg = take_uleb(b);
		set_place(row, reg, PTT_PLACE_IN, (int64_t)take_uleb(b));
		break;
	case CFA_REMEMBER_STATE:
		push_row(m, b);
		break;
	case CFA_RESTORE_STATE:
		pop_row(m, b);
		break;
	case CFA_DEF_CFA:
		set_cfa_register(m, take_uleb(b));
		row->cfa_offset = (int64_t)take_uleb(b);
		break;
	case CFA_DEF_CFA_SF:
		set_cfa_register(m, take_uleb(b));
		row->cfa_offset = in_bytes(m, take_sleb(b));
		break;
	case CFA_DEF_CFA_REGISTER:
		set_cfa_register(m, take_uleb(b));
		break;
	case CFA_DEF_CFA_OFFSET:
		row->cfa_offset = (int64_t)take_uleb(b);
		break;
	case CFA_DEF_CFA_OFFSET_SF:
		row->cfa_offset = in_bytes(m, take_sleb(b));
		break;
	case CFA_DEF_CFA_EXPRESSION:
		set_cfa_expression(m, b);
		break;
	case CFA_EXPRESSION:
		set_saved_by_expression(m, b);
		break;
	case CFA_VAL_EXPRESSION:
		set_place(row, take_uleb(b), PTT_PLACE_UNKNOWN, 0);
		skip(b, take_uleb(b));
		break;
	case CFA_GNU_ARGS_SIZE:
		take_uleb(b);
		break;
	default:
		b->bad = true;
	}
}

/* Return: the advance of the location, in code alignment units. */
static uint64_t run_instruction(struct machine *m, struct bytes *b)
{
	uint8_t code = (uint8_t)take(b, 1), operand = code & 0x3f;

	switch (code & 0xc0) {
	case CFA_ADVANCE_LOC:
		return operand;
	case CFA_OFFSET:
		set_saved(m, operand, (int64_t)take_uleb(b));
		return 0;
	case CFA_RESTORE:
		set_unsaved(m, operand);
		return 0;
	}
	switch (code) {
	case CFA_ADVANCE_LOC1:
		return take(b, 1);
	case CFA_ADVANCE_LOC2:
		return take(b, 2);
	case CFA_ADVANCE_LOC4:
		return take(b, 4);
	}
	run_extended(m, b, code);
	return 0;
}

/* Run a program up to the rows behind the wanted address. */
static bool run(struct machine *m, struct bytes program)
{
	while (!program.bad && program.at < program.end) {
		uint64_t units = run_instruction(m, &program);

		if (units * m->common->code_unit > m->pc - m->location)
			break;
		m->location += units * m->common->code_unit;
	}
	return !program.bad;
}

/* ------------------------------------------------------------ tables */

/* A range of code with an FDE. */
struct piece {
	const uint8_t *entry; /* the FDE, or NULL */
	uintptr_t begin;
};

/* Does the header have a sorted table of pairs of 32-bit offsets from the header? */
static bool is_sorted(const struct ptt_unwind_table *table)
{
	const uint8_t *header = table->header;

	/* version, then encodings of: the address of .eh_frame, the count, the pairs */
	return header && lies_in(table, header, 12) && header[0] == 1 && pointer_size(header[1]) == 4 && header[2] == PE_UDATA4 &&
	       header[3] == (PE_FROM_TABLE | PE_SDATA4);
}

/* The last range of code that begins at @pc or before, by the sorted table. */
static struct piece find_piece(const struct ptt_unwind_table *table, uintptr_t pc)
{
	struct pair {
		int32_t location, entry; /* offsets from the start of the header */
	} pair;
	const uint8_t *header = table->header, *pairs = header + 12;
	int64_t wanted = (int64_t)(pc - table->shift - (uintptr_t)header);
	uint32_t low = 0, high;

	memcpy(&high, header + 8, sizeof(high));
	if (!lies_in(table, pairs, (uint64_t)high * sizeof(pair)))
		return (struct piece){0};
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		memcpy(&pair, pairs + (uint64_t)middle * sizeof(pair), sizeof(pair));
		if (pair.location <= wanted)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return (struct piece){0};
	memcpy(&pair, pairs + (uint64_t)(low - 1) * sizeof(pair), sizeof(pair));
	return (struct piece){header + pair.entry, (uintptr_t)(header + pair.location) + table->shift};
}

/* An absolute address, or an offset from its own position. */
static uintptr_t take_address(const struct ptt_unwind_table *table, struct bytes *b, uint8_t encoding)
{
	uintptr_t here = (uintptr_t)b->at + table->shift;
	size_t size = pointer_size(encoding);
	uint64_t value = take(b, size);
	unsigned int unused = 64 - 8 * (unsigned int)size;

	if (encoding & PE_SIGNED)
		value = (uint64_t)((int64_t)(value << unused) >> unused);
	if ((encoding & PE_BASE) == PE_FROM_HERE)
		value += here;
	else if (encoding & PE_BASE)
		b->bad = true;
	return value;
}

/* The last range of code that begins at @pc or before, by all entries. */
static struct piece search_piece(const struct ptt_unwind_table *table, uintptr_t pc)
{
	const uint8_t *entry = table->frames, *known = NULL;
	struct piece last = {0};
	struct common common;
	struct bytes b;
	uint32_t back;

	for (; open_entry(table, entry, &b); entry = b.end) {
		const uint8_t *here = b.at;
		struct bytes fields = b;
		uintptr_t begin;

		back = (uint32_t)take(&fields, sizeof(back));
		if (!back || fields.bad)
			continue;
		if (here - back != known) {
			if (!read_common(table, here - back, &common))
				continue;
			known = here - back;
		}
		if (!pointer_size(common.encoding))
			continue;
		begin = take_address(table, &fields, common.encoding);
		if (!fields.bad && begin <= pc && (!last.entry || begin >= last.begin))
			last = (struct piece){entry, begin};
	}
	return last;
}

static bool run_entry(const struct ptt_unwind_table *table, struct piece piece, uintptr_t pc, struct ptt_unwind_row *row)
{
	struct common common;
	struct machine m;
	struct bytes b;
	uint32_t back;
	size_t size;

	if (!open_entry(table, piece.entry, &b) || b.end - b.at < (ptrdiff_t)sizeof(back))
		return false;
	memcpy(&back, b.at, sizeof(back));
	if (!back || !read_common(table, b.at - back, &common))
		return false;
	take(&b, sizeof(back));
	size = pointer_size(common.encoding);
	if (!size)
		return false;
	take(&b, size);
	if (pc - piece.begin >= take(&b, size))
		return false;
	if (common.signal) {
		*row = (struct ptt_unwind_row){.function = piece.begin, .cfa = PTT_CFA_SIGNAL};
		return !b.bad;
	}
	if (common.augmented)
		skip(&b, take_uleb(&b));
	/* field by field: an initializer would also clear the saved rows, which costs more than all the rest */
	m.processor = table->processor;
	m.common = &common;
	m.row = (struct state){0};
	m.row.place[table->processor->ra].how = PTT_PLACE_UNKNOWN;
	m.initial = m.row;
	m.depth = 0;
	m.location = piece.begin;
	m.pc = pc;
	if (b.bad || !run(&m, common.program))
		return false;
	m.initial = m.row;
	if (!run(&m, b))
		return false;
	*row = (struct ptt_unwind_row){
		.function = piece.begin,
		.cfa_offset = m.row.cfa_offset,
		.cfa = m.row.cfa,
		.cfa_register = m.row.cfa_register,
	};
	for (unsigned int i = 0; i < PTT_PLACE_COUNT; i++)
		row->place[i] = (struct ptt_place){m.row.place[i].offset, m.row.place[i].how};
	return true;
}

bool ptt_unwind_row(const struct ptt_unwind_table *table, uintptr_t pc, struct ptt_unwind_row *row)
{
	struct piece piece = {0};

	if (is_sorted(table))
		piece = find_piece(table, pc);
	else if (table->frames)
		piece = search_piece(table, pc);
	return piece.entry && run_entry(table, piece, pc, row) &&
	       (row->cfa != PTT_CFA_UNKNOWN || row->place[table->processor->ra].how == PTT_PLACE_NOWHERE);
}

/* ------------------------------------------------------------ rules */

#define WORD ((int32_t)sizeof(void *))

/* Can a rule express the row? */
static bool is_simple(const struct ptt_unwind_row *row)
{
	const struct ptt_place *ra = &row->place[PTT_REG_RA], *fp = &row->place[PTT_REG_BP];

	if (row->cfa == PTT_CFA_ROW || row->cfa_offset != (int32_t)row->cfa_offset || ra->how != PTT_PLACE_BY_CFA)
		return false;
#if defined(__aarch64__)
	return fp->how == PTT_PLACE_SAME || (fp->how == PTT_PLACE_BY_CFA && fp->offset == ra->offset - WORD);
#else
	return ra->offset == -WORD && fp->how <= PTT_PLACE_BY_FP;
#endif
}

static int32_t fp_offset(const struct ptt_unwind_row *row)
{
#if defined(__aarch64__)
	return row->place[PTT_REG_RA].offset - WORD;
#else
	return row->place[PTT_REG_BP].offset;
#endif
}

static void simplify(const struct ptt_unwind_row *row, struct ptt_unwind_rule *rule)
{
	const struct ptt_place *fp = &row->place[PTT_REG_BP];

	rule->cfa = (enum ptt_cfa)row->cfa;
	rule->fp = PTT_FP_SAME;
	rule->cfa_offset = rule->fp_offset = 0;
	if (row->cfa == PTT_CFA_SIGNAL)
		return;
	if (row->place[PTT_REG_RA].how == PTT_PLACE_NOWHERE) {
		rule->cfa = PTT_CFA_OUTERMOST;
	} else if (!is_simple(row)) {
		rule->cfa = PTT_CFA_ROW;
	} else {
		rule->cfa_offset = (int32_t)row->cfa_offset;
		rule->fp = fp->how == PTT_PLACE_BY_CFA ? PTT_FP_BY_CFA : fp->how == PTT_PLACE_BY_FP ? PTT_FP_BY_FP : PTT_FP_SAME;
		rule->fp_offset = fp_offset(row);
	}
}

bool ptt_unwind_rule(const struct ptt_unwind_table *table, uintptr_t pc, struct ptt_unwind_rule *rule)
{
	struct ptt_unwind_row row;

	if (!ptt_unwind_row(table, pc, &row))
		return false;
	rule->function = row.function;
	simplify(&row, rule);
	return true;
}
