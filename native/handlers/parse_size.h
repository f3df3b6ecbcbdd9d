/* SPDX-License-Identifier: MIT */
/* parse_size.h - reads the sizes in the arguments of handlers. */
#ifndef PTT_PARSE_SIZE_H
#define PTT_PARSE_SIZE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * ptt_parse_size - read a decimal number, which may end with K, M, G or T
 * @value: set on success: a number from @least to @most
 * Changes errno. Return: false if @text is no such number.
 */
static inline bool ptt_parse_size(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
	static const char units[] = "KMGT";
	unsigned long long number;
	const char *unit;
	char *end;
	int shift;

	errno = 0;
	number = strtoull(text, &end, 10);
	unit = *end ? strchr(units, *end & ~0x20) : NULL;
	shift = unit ? 10 * (int)(unit - units + 1) : 0;
	if (errno || *text < '0' || *text > '9' || (*end && (!unit || end[1])) || number > UINT64_MAX >> shift)
		return false;
	*value = (uint64_t)number << shift;
	return *value >= least && *value <= most;
}

#endif
