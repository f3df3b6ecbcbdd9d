/* SPDX-License-Identifier: MIT */
/* unwind.c - reads unwind tables (.eh_frame_hdr, .eh_frame: DWARF call frame information) as far as stacks need them. */
/*
 * The common subset only: tables with 32-bit entries, a frame address that is an offset from stack or frame pointer,
 * registers saved at fixed places. Whatever else a table says, the answer is that there is no rule.
 */
#include <stddef.h>
#include <string.h>

#include "unwind.h"

/* Numbers that the processor's ABI gives to registers. */
#define DWARF_FP 6
#define DWARF_SP 7
#define DWARF_RA 16

/* Encodings of pointers: the low half says how they are stored, the high one what they count from. */
#define PE_FORMAT 0x0f
#define PE_ABSPTR 0x00
#define PE_UDATA2 0x02
#define PE_UDATA4 0x03
#define PE_UDATA8 0x04
#define PE_SDATA2 0x0a
#define PE_SDATA4 0x0b
#define PE_SDATA8 0x0c
#define PE_ALIGNED 0x50
#define PE_FROM_TABLE 0x30

/* Instructions, the first three with an operand in their low six bits. */
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
	CFA_GNU_ARGS_SIZE = 0x2e,
};

/* ------------------------------------------------------------ bytes */

struct bytes {
	const uint8_t *at, *end;
	bool bad; /* something lay past the end, or is not understood */
};

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

/* A number in pieces of seven bits, the low ones first; @bits: how many there were. */
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

/* How many bytes a pointer of this encoding has; 0: not known. */
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

/* A common information entry, as far as it matters to those that share it. */
struct common {
	uint64_t code_unit;
	int64_t data_unit;
	uint8_t encoding; /* of the addresses in the entries */
	bool augmented;	  /* their augmentation has a length */
	struct bytes program;
};

/* An entry begins with its length; the long form is not for tables with 32-bit entries. */
static bool open_entry(const uint8_t *at, struct bytes *entry)
{
	uint32_t length;

	memcpy(&length, at, sizeof(length));
	if (!length || length >= 0xfffffff0)
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
		default: /* 'S' among them: a frame that a signal made */
			return false;
		}
	}
	return true;
}

static bool read_common(const uint8_t *at, struct common *c)
{
	struct bytes b, more;
	const char *letters;
	uint64_t version;

	if (!open_entry(at, &b) || take(&b, 4) != 0)
		return false;
	version = take(&b, 1);
	letters = (const char *)b.at;
	while (take(&b, 1))
		;
	c->code_unit = take_uleb(&b);
	c->data_unit = take_sleb(&b);
	if ((version == 1 ? take(&b, 1) : take_uleb(&b)) != DWARF_RA || b.bad)
		return false;
	c->encoding = PE_ABSPTR;
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

#define NOWHERE UINT64_MAX /* that of a register that is not saved in the frame: elsewhere, or not at all */

struct row {
	uint64_t cfa_register, cfa_offset;
	uint64_t fp_below; /* 0: unchanged */
	uint64_t ra_below;
};

struct machine {
	const struct common *common;
	struct row row, initial;
	struct row saved[4];
	unsigned int depth;
	uintptr_t location;
};

static void set_below(struct row *row, uint64_t reg, uint64_t below)
{
	if (reg == DWARF_FP)
		row->fp_below = below;
	else if (reg == DWARF_RA)
		row->ra_below = below;
}

static void set_saved(struct machine *m, uint64_t reg, int64_t units)
{
	set_below(&m->row, reg, (uint64_t)-(units * m->common->data_unit));
}

static void set_unsaved(struct machine *m, uint64_t reg)
{
	if (reg == DWARF_FP)
		m->row.fp_below = m->initial.fp_below;
	else if (reg == DWARF_RA)
		m->row.ra_below = m->initial.ra_below;
}

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
	struct row *row = &m->row;
	uint64_t reg;

	switch (code) {
	case CFA_NOP:
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
		set_saved(m, take_uleb(b), 0);
		break;
	case CFA_UNDEFINED: /* as the return address of whatever comes first in a thread */
		set_below(row, take_uleb(b), NOWHERE);
		break;
	case CFA_REGISTER:
		set_below(row, take_uleb(b), NOWHERE);
		take_uleb(b);
		break;
	case CFA_REMEMBER_STATE:
		push_row(m, b);
		break;
	case CFA_RESTORE_STATE:
		pop_row(m, b);
		break;
	case CFA_DEF_CFA:
		row->cfa_register = take_uleb(b);
		row->cfa_offset = take_uleb(b);
		break;
	case CFA_DEF_CFA_SF:
		row->cfa_register = take_uleb(b);
		row->cfa_offset = (uint64_t)(take_sleb(b) * m->common->data_unit);
		break;
	case CFA_DEF_CFA_REGISTER:
		row->cfa_register = take_uleb(b);
		break;
	case CFA_DEF_CFA_OFFSET:
		row->cfa_offset = take_uleb(b);
		break;
	case CFA_DEF_CFA_OFFSET_SF:
		row->cfa_offset = (uint64_t)(take_sleb(b) * m->common->data_unit);
		break;
	case CFA_DEF_CFA_EXPRESSION:
		row->cfa_register = 0; /* until it is a register again */
		skip(b, take_uleb(b));
		break;
	case CFA_EXPRESSION:
	case CFA_VAL_EXPRESSION:
		set_below(row, take_uleb(b), NOWHERE);
		skip(b, take_uleb(b));
		break;
	case CFA_GNU_ARGS_SIZE:
		take_uleb(b);
		break;
	default:
		b->bad = true;
	}
}

/* Return: how far the instruction moves the location, in units of code. */
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

/* Run a program until it comes to what holds behind @pc only. */
static bool run(struct machine *m, struct bytes program, uintptr_t pc)
{
	while (!program.bad && program.at < program.end) {
		uint64_t units = run_instruction(m, &program);

		if (units * m->common->code_unit > pc - m->location)
			break;
		m->location += units * m->common->code_unit;
	}
	return !program.bad;
}

/* ------------------------------------------------------------ tables */

/* The entry of the last piece of code that begins at @pc or before, by the sorted table; NULL if there is none. */
static const uint8_t *find_entry(const uint8_t *table, uintptr_t pc, uintptr_t *begin)
{
	struct pair {
		int32_t location, entry; /* both from the beginning of the table */
	} pair;
	int64_t wanted = (int64_t)(pc - (uintptr_t)table);
	const uint8_t *pairs;
	uint32_t low = 0, high;

	/* version, then encodings of: the address of .eh_frame, the count, the pairs */
	if (table[0] != 1 || pointer_size(table[1]) != 4 || table[2] != PE_UDATA4 || table[3] != (PE_FROM_TABLE | PE_SDATA4))
		return NULL;
	memcpy(&high, table + 8, sizeof(high));
	pairs = table + 12;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		memcpy(&pair, pairs + middle * sizeof(pair), sizeof(pair));
		if (pair.location <= wanted)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	memcpy(&pair, pairs + (low - 1) * sizeof(pair), sizeof(pair));
	*begin = (uintptr_t)(table + pair.location);
	return table + pair.entry;
}

static bool run_entry(const uint8_t *entry, uintptr_t begin, uintptr_t pc, struct row *row)
{
	struct machine m = {.location = begin};
	struct common common;
	struct bytes b;
	uint32_t back;
	size_t size;

	if (!open_entry(entry, &b))
		return false;
	memcpy(&back, b.at, sizeof(back));
	if (!back || !read_common(b.at - back, &common))
		return false;
	take(&b, sizeof(back));
	size = pointer_size(common.encoding);
	if (!size)
		return false;
	take(&b, size);
	if (pc - begin >= take(&b, size))
		return false;
	if (common.augmented)
		skip(&b, take_uleb(&b));
	m.common = &common;
	if (b.bad || !run(&m, common.program, pc))
		return false;
	m.initial = m.row;
	if (!run(&m, b, pc))
		return false;
	*row = m.row;
	return true;
}

bool ptt_unwind_rule(const void *table, uintptr_t pc, struct ptt_unwind_rule *rule)
{
	const uint8_t *entry;
	uintptr_t begin;
	struct row row;

	entry = table ? find_entry(table, pc, &begin) : NULL;
	if (!entry || !run_entry(entry, begin, pc, &row) || row.fp_below == NOWHERE || row.ra_below != sizeof(void *))
		return false;
	if (row.cfa_register != DWARF_FP && row.cfa_register != DWARF_SP)
		return false;
	*rule = (struct ptt_unwind_rule){
		.function = begin,
		.by_frame_pointer = row.cfa_register == DWARF_FP,
		.cfa_offset = row.cfa_offset,
		.fp_below = row.fp_below,
	};
	return true;
}
