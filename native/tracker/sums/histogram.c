/* SPDX-License-Identifier: MIT */
/* histogram.c - how often a wait lasted how long, for percentiles. */
#include "sums.h"

/* 16 steps an octave: the middle of a bucket is within 3 % of what it stands for. */
static uint32_t bucket_of(uint64_t ns)
{
	uint32_t octave, bucket;

	if (ns < 16)
		return (uint32_t)ns;
	octave = 63u - (uint32_t)__builtin_clzll(ns);
	bucket = (octave - 3) * 16 + (uint32_t)(ns >> (octave - 4) & 15);
	return bucket < PTT_BUCKETS ? bucket : PTT_BUCKETS - 1;
}

double ptt_model_bucket_ns(uint32_t bucket)
{
	uint32_t octave = bucket / 16 + 3;
	double step;

	if (bucket < 16)
		return bucket;
	step = (double)(UINT64_C(1) << (octave - 4));
	return (double)(16 + bucket % 16) * step + (step - 1) / 2;
}

void md_histogram_add(struct ptt_model *m, uint32_t *histogram, uint64_t ns)
{
	if (!*histogram)
		*histogram = md_new(m, &m->histograms);
	((uint32_t *)(void *)m->histograms.items)[(uint64_t)*histogram * PTT_BUCKETS + bucket_of(ns)]++;
}
