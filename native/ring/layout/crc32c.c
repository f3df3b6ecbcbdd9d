/* SPDX-License-Identifier: MIT */
/* crc32c.c - CRC-32C with the processor's CRC instruction, three runs at a time, or with a table. */
#include "crc32c.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#endif

#define POLYNOMIAL UINT32_C(0x82f63b78) /* bit 31 is x^0 */

/* ------------------------------------------------------------- arithmetic */

/* Product of two polynomials modulo the polynomial of the CRC. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (uint32_t bit = UINT32_C(1) << 31; bit; bit >>= 1) {
		if (a & bit)
			product ^= b;
		b = b >> 1 ^ (b & 1 ? POLYNOMIAL : 0);
	}
	return product;
}

uint32_t ptt_crc32c_join(uint32_t crc_a, uint32_t crc_b, uint64_t size_b)
{
	uint32_t power = UINT32_C(1) << 23; /* x^8: one byte */

	/* Move A up by 8 * size_b bits, one binary digit of size_b at a time. */
	for (; size_b; size_b >>= 1) {
		if (size_b & 1)
			crc_a = multiply(crc_a, power);
		power = multiply(power, power);
	}
	return crc_a ^ crc_b;
}

/* ------------------------------------------------------------------ table */

/* CRC of each value of half a byte. The table is short enough to write out and fast enough for processors without the instruction. */
static const uint32_t half_byte[16] = {
	0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
	0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t ptt_crc32c_table(uint32_t crc, const void *data, size_t size)
{
	const uint8_t *p = data;

	crc = ~crc;
	while (size--) {
		crc ^= *p++;
		crc = crc >> 4 ^ half_byte[crc & 15];
		crc = crc >> 4 ^ half_byte[crc & 15];
	}
	return ~crc;
}

/* ----------------------------------------------------------------- x86-64 */

#if defined(__x86_64__)

/* With GCC, SSE4.2 includes the instruction; newer clang has a feature of its own for it. */
#if defined(__clang__)
#define FAST __attribute__((target("sse4.2,crc32,pclmul")))
#else
#define FAST __attribute__((target("sse4.2,pclmul")))
#endif

/*
 * The instruction has a latency of three cycles and a throughput of one, so three independent runs keep it busy. A
 * carry-less product joins their values: with K = x^(8n-33), the instruction reduces value * K to the value moved up by n
 * bytes.
 */
#define LONG_RUN 1360u
#define LONG_K1 UINT32_C(0x3f70cc6f)
#define LONG_K2 UINT32_C(0x5aa1f3cf)
#define SHORT_RUN 168u
#define SHORT_K1 UINT32_C(0x1b3d8f29)
#define SHORT_K2 UINT32_C(0xa60ce07b)

static inline uint64_t load64(const uint8_t *p)
{
	uint64_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}

FAST static inline uint32_t move_up(uint32_t crc, uint32_t k)
{
	__m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)crc), _mm_cvtsi32_si128((int)k), 0);

	return (uint32_t)_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

FAST static inline uint32_t three_runs(uint32_t crc, const uint8_t *p, size_t run, uint32_t k1, uint32_t k2)
{
	uint64_t a = crc, b = 0, c = 0;

	for (size_t i = 0; i < run; i += 8) {
		a = _mm_crc32_u64(a, load64(p + i));
		b = _mm_crc32_u64(b, load64(p + run + i));
		c = _mm_crc32_u64(c, load64(p + 2 * run + i));
	}
	return move_up((uint32_t)a, k2) ^ move_up((uint32_t)b, k1) ^ (uint32_t)c;
}

FAST static uint32_t crc_instruction(uint32_t crc, const uint8_t *p, size_t size)
{
	crc = ~crc;
	for (; size >= 3 * LONG_RUN; p += 3 * LONG_RUN, size -= 3 * LONG_RUN)
		crc = three_runs(crc, p, LONG_RUN, LONG_K1, LONG_K2);
	for (; size >= 3 * SHORT_RUN; p += 3 * SHORT_RUN, size -= 3 * SHORT_RUN)
		crc = three_runs(crc, p, SHORT_RUN, SHORT_K1, SHORT_K2);
	for (; size >= 8; p += 8, size -= 8)
		crc = (uint32_t)_mm_crc32_u64(crc, load64(p));
	for (; size; p++, size--)
		crc = _mm_crc32_u8(crc, *p);
	return ~crc;
}

static int has_instruction(void)
{
	return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

/* ------------------------------------------------------------------ arm64 */

#elif defined(__aarch64__)

__attribute__((target("+crc"))) static uint32_t crc_instruction(uint32_t crc, const uint8_t *p, size_t size)
{
	uint64_t value;

	crc = ~crc;
	for (; size >= 8; p += 8, size -= 8) {
		memcpy(&value, p, sizeof(value));
		crc = __crc32cd(crc, value);
	}
	for (; size; p++, size--)
		crc = __crc32cb(crc, *p);
	return ~crc;
}

static int has_instruction(void)
{
	return (getauxval(AT_HWCAP) & 1ul << 7) != 0; /* HWCAP_CRC32 */
}

#else

static uint32_t crc_instruction(uint32_t crc, const uint8_t *p, size_t size)
{
	return ptt_crc32c_table(crc, p, size);
}

static int has_instruction(void)
{
	return 0;
}

#endif

uint32_t ptt_crc32c(uint32_t crc, const void *data, size_t size)
{
	return has_instruction() ? crc_instruction(crc, data, size) : ptt_crc32c_table(crc, data, size);
}
