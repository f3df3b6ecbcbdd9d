/* SPDX-License-Identifier: MIT */
/* line.h - puts numbers and texts into a line; the caller makes sure that there is room. */
#ifndef PTTREAD_OUT_H
#define PTTREAD_OUT_H

#include <stdint.h>
#include <string.h>

static inline char *out_text(char *p, const char *text, size_t size)
{
	memcpy(p, text, size);
	return p + size;
}

static inline char *out_string(char *p, const char *text)
{
	return out_text(p, text, strlen(text));
}

#define OUT_LITERAL(p, text) out_text(p, text, sizeof(text) - 1)

static inline char *out_u64(char *p, uint64_t value)
{
	char digits[20];
	int n = 20;

	do {
		digits[--n] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	return out_text(p, digits + n, (size_t)(20 - n));
}

static inline char *out_s64(char *p, int64_t value)
{
	if (value < 0) {
		*p++ = '-';
		return out_u64(p, -(uint64_t)value);
	}
	return out_u64(p, (uint64_t)value);
}

static inline char *out_hex(char *p, uint64_t value)
{
	static const char digit[] = "0123456789abcdef";
	int shift = value ? (63 - __builtin_clzll(value)) & ~3 : 0;

	*p++ = '0';
	*p++ = 'x';
	for (; shift >= 0; shift -= 4)
		*p++ = digit[value >> shift & 15];
	return p;
}

/* Exactly `width` digits, with leading zeros. */
static inline char *out_digits(char *p, uint64_t value, int width)
{
	for (int i = width; i-- > 0; value /= 10)
		p[i] = (char)('0' + value % 10);
	return p + width;
}

/* Seconds with nine decimals, the seconds padded to `width`. */
static inline char *out_seconds(char *p, int64_t ns, int width)
{
	uint64_t magnitude = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	char whole[24], *end = whole;

	if (ns < 0)
		*end++ = '-';
	end = out_u64(end, magnitude / 1000000000);
	for (int i = (int)(end - whole); i < width; i++)
		*p++ = ' ';
	p = out_text(p, whole, (size_t)(end - whole));
	*p++ = '.';
	return out_digits(p, magnitude % 1000000000, 9);
}

/* A duration for people: 870 ns, 12.345 us, 1.500 s. */
char *out_duration(char *p, uint64_t ns);
/* Bytes as the inside of a JSON string; bytes that are not UTF-8 become U+FFFD. */
char *out_json(char *p, const char *bytes, size_t size);
/* Bytes as the inside of a CSV field. */
char *out_csv(char *p, const char *bytes, size_t size);
/* Bytes as a word for awk: blanks, and characters that terminals obey, become %NN. */
char *out_word(char *p, const char *bytes, size_t size);
/* Bytes for people: printable text as it is, other bytes as \xNN. */
char *out_plain(char *p, const char *bytes, size_t size);

#endif
