/* SPDX-License-Identifier: MIT */
/* sites.c - keeps the call sites of process images, and the modules that had the same addresses one after the other. */
#include "sites.h"

#include "tables.h"

static void put(uint64_t *words, uint32_t mask, uint64_t word)
{
	uint32_t i = (uint32_t)(word >> PTT_SITE_SHIFT);

	while (words[i & mask])
		i++;
	words[i & mask] = word;
}

/* At most half of the words are in use. */
static int make_room(struct rd_sites *sites)
{
	uint32_t size = sites->words ? (sites->mask + 1) * 2 : 16;
	uint64_t *words;

	if (sites->words && (sites->count + 1) * 2 <= sites->mask + 1)
		return 0;
	words = calloc(size, sizeof(*words));
	if (!words)
		return -ENOMEM;
	for (uint32_t i = 0; sites->words && i <= sites->mask; i++)
		if (sites->words[i])
			put(words, size - 1, sites->words[i]);
	free((void *)(uintptr_t)sites->words);
	sites->words = words;
	sites->mask = size - 1;
	return 0;
}

int rd_sites_set(struct rd_sites *sites, uint32_t id, uint64_t address)
{
	uint64_t *words, word = (uint64_t)id << PTT_SITE_SHIFT | (address & PTT_SITE_ADDRESS);
	int err = make_room(sites);

	if (err < 0)
		return err;
	words = (void *)(uintptr_t)sites->words;
	for (uint32_t i = id; words[i & sites->mask]; i++)
		if (words[i & sites->mask] >> PTT_SITE_SHIFT == id) {
			words[i & sites->mask] = word;
			return 0;
		}
	put(words, sites->mask, word);
	sites->count++;
	return 0;
}

int rd_sites_add_tenant(struct rd_sites *sites, const struct ptt_tenant *tenant)
{
	const struct ptt_tenant *last = sites->tenant_count ? &sites->tenants[sites->tenant_count - 1] : NULL;
	bool same = last && last->range_start == tenant->range_start && last->range_end == tenant->range_end;

	if (tenant->start >= tenant->end || tenant->generation > PTT_SITE_GENERATION_MAX ||
	    tenant->start < tenant->range_start || tenant->end > tenant->range_end ||
	    (last && (same ? tenant->since < last->since : tenant->range_start < last->range_end)))
		return -EINVAL;
	if (rd_grow((void **)&sites->tenants, &sites->tenant_room, sites->tenant_count, sizeof(*tenant)) < 0)
		return -ENOMEM;
	sites->tenants[sites->tenant_count++] = *tenant;
	return 0;
}

int rd_sites_of_stacks(struct rd_sites *sites, const uint64_t *site, uint32_t count)
{
	uint64_t *copy = malloc((count ? count : 1) * sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	if (count)
		memcpy(copy, site, count * sizeof(*copy));
	free(sites->of_stack);
	sites->of_stack = copy;
	sites->of_stack_count = count;
	return 0;
}

void rd_sites_free(struct rd_sites *sites)
{
	free(sites->of_stack);
	free((void *)(uintptr_t)sites->words);
	free(sites->tenants);
}

/* Number of tenants of earlier ranges, and of this range up to a time. */
static uint32_t count_before(const struct rd_sites *sites, uint64_t address, uint64_t ticks)
{
	uint32_t lo = 0, hi = sites->tenant_count;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct ptt_tenant *t = &sites->tenants[mid];

		if (t->range_end <= address || (t->range_start <= address && t->since <= ticks))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

uint64_t rd_sites_generation(const struct rd_sites *sites, uint64_t address, uint64_t ticks)
{
	/* the latest tenant by then; if there is none yet, the first tenant after it */
	uint32_t at = count_before(sites, address, ticks), i;

	for (i = at; i-- > 0 && sites->tenants[i].range_end > address;)
		if (sites->tenants[i].start <= address && address < sites->tenants[i].end)
			return (uint64_t)sites->tenants[i].generation << PTT_SITE_SHIFT;
	for (i = at; i < sites->tenant_count && sites->tenants[i].range_start <= address; i++)
		if (sites->tenants[i].start <= address && address < sites->tenants[i].end)
			return (uint64_t)sites->tenants[i].generation << PTT_SITE_SHIFT;
	return 0;
}
