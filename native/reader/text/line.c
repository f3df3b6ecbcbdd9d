/* SPDX-License-Identifier: MIT */
/* line.c - puts durations, and texts of unknown content, into a line. */
#include "line.h"

#include <stdbool.h>

char *out_duration(char *p, uint64_t ns)
{
	static const struct {
		uint64_t unit;
		const char *name;
	} units[] = { { 1000000000, " s" }, { 1000000, " ms" }, { 1000, " us" } };

	for (int i = 0; i < 3; i++) {
		if (ns < units[i].unit)
			continue;
		p = out_u64(p, ns / units[i].unit);
		*p++ = '.';
		p = out_digits(p, ns % units[i].unit / (units[i].unit / 1000), 3);
		return out_string(p, units[i].name);
	}
	return OUT_LITERAL(out_u64(p, ns), " ns");
}

/* Length of the UTF-8 sequence at s, 0 if it is not one. */
static size_t utf8(const uint8_t *s, size_t left)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 :
		   s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;

	if (n > left)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* Overlong forms, surrogates, and code points beyond Unicode. */
	if (n == 3 && ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0)))
		return 0;
	if (n == 4 && ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90)))
		return 0;
	return n;
}

char *out_json(char *p, const char *bytes, size_t size)
{
	static const char digit[] = "0123456789abcdef";
	const uint8_t *s = (const uint8_t *)bytes;

	while (size) {
		size_t n = utf8(s, size);

		if (!n) {
			p = OUT_LITERAL(p, "\\ufffd");
			n = 1;
		} else if (*s == '"' || *s == '\\') {
			*p++ = '\\';
			*p++ = (char)*s;
		} else if (*s < 0x20 || *s == 0x7f) {
			p = OUT_LITERAL(p, "\\u00");
			*p++ = digit[*s >> 4];
			*p++ = digit[*s & 15];
		} else {
			p = out_text(p, (const char *)s, n);
		}
		s += n;
		size -= n;
	}
	return p;
}

/* A control character of ISO 6429, or a character that changes the direction of the text around it. */
static bool is_obeyed(const uint8_t *s, size_t n)
{
	if (n == 1)
		return *s < 0x20 || *s == 0x7f;
	if (n == 2)
		return (s[0] == 0xc2 && s[1] < 0xa0) || (s[0] == 0xd8 && s[1] == 0x9c);
	if (n != 3 || s[0] != 0xe2)
		return false;
	return (s[1] == 0x80 && ((s[2] >= 0x8e && s[2] <= 0x8f) || (s[2] >= 0xa8 && s[2] <= 0xae))) ||
	       (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9);
}

/* Bytes that terminals obey, or that are not UTF-8, become two digits behind @mark; in a word, so do blanks and percent signs. */
static inline char *escaped(char *p, const char *bytes, size_t size, const char *mark, bool word)
{
	static const char digit[] = "0123456789abcdef";
	const uint8_t *s = (const uint8_t *)bytes;

	while (size) {
		size_t n = utf8(s, size);

		if (n && !is_obeyed(s, n) && !(word && (*s == ' ' || *s == '%'))) {
			p = out_text(p, (const char *)s, n);
		} else {
			n = 1;
			p = out_text(p, mark, strlen(mark));
			*p++ = digit[*s >> 4];
			*p++ = digit[*s & 15];
		}
		s += n;
		size -= n;
	}
	return p;
}

char *out_plain(char *p, const char *bytes, size_t size)
{
	return escaped(p, bytes, size, "\\x", false);
}

char *out_word(char *p, const char *bytes, size_t size)
{
	return escaped(p, bytes, size, "%", true);
}

char *out_csv(char *p, const char *bytes, size_t size)
{
	bool quoted = false;

	for (size_t i = 0; i < size; i++)
		quoted |= bytes[i] == '"' || bytes[i] == ',' || bytes[i] == '\n' || bytes[i] == '\r';
	if (!quoted)
		return out_text(p, bytes, size);
	*p++ = '"';
	for (size_t i = 0; i < size; i++) {
		if (bytes[i] == '"')
			*p++ = '"';
		*p++ = bytes[i];
	}
	*p++ = '"';
	return p;
}
