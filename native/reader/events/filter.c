/* SPDX-License-Identifier: MIT */
/* filter.c - lets the events through that the user asked for. */
#include "../choice.h"
#include "../traceset.h"

struct ptt_filter {
	bool by_event, by_thread, by_object, by_site;
	bool event[1024];
	bool kept[1024]; /* passes on any object and from any call site */
	struct rd_map threads;
	struct rd_choice objects;
	struct rd_map sites; /* (process, address); process UINT32_MAX for any */
};

struct ptt_filter *ptt_filter_create(void)
{
	return calloc(1, sizeof(struct ptt_filter));
}

void ptt_filter_destroy(struct ptt_filter *filter)
{
	if (!filter)
		return;
	rd_map_free(&filter->threads);
	rd_choice_free(&filter->objects);
	rd_map_free(&filter->sites);
	free(filter);
}

int ptt_filter_allow_event(struct ptt_filter *filter, uint32_t id)
{
	filter->by_event = true;
	if (id < 1024)
		filter->event[id] = true;
	return 0;
}

int ptt_filter_keep_event(struct ptt_filter *filter, uint32_t id)
{
	if (id < 1024)
		filter->kept[id] = true;
	return 0;
}

int ptt_filter_allow_thread(struct ptt_filter *filter, uint32_t thread)
{
	filter->by_thread = true;
	return rd_map_put(&filter->threads, thread, 0) ? 0 : -ENOMEM;
}

int ptt_filter_allow_object(struct ptt_filter *filter, uint32_t process, uint64_t address, uint32_t kind,
			    int64_t begin_ns, int64_t end_ns)
{
	filter->by_object = true;
	return rd_choice_add(&filter->objects, process, address, kind, begin_ns, end_ns) ? -ENOMEM : 0;
}

int ptt_filter_allow_site(struct ptt_filter *filter, uint32_t process, uint64_t address)
{
	filter->by_site = true;
	return rd_map_put(&filter->sites, process, address) ? 0 : -ENOMEM;
}

bool rd_passes(const struct ptt_filter *filter, const struct ptt_reader *reader, const struct ptt_columns *columns,
	       int64_t i)
{
	uint32_t thread = columns->thread[i], id = columns->id[i] & PTT_ID_MASK;
	uint32_t process = thread < reader->thread_count ? reader->threads[thread].process : RD_NONE;

	if (filter->by_event && !filter->event[id])
		return false;
	if (filter->by_thread && !rd_map_find(&filter->threads, thread, 0))
		return false;
	if (filter->kept[id])
		return true;
	if (filter->by_object && !rd_chosen(&filter->objects, process, columns->object[i], id >> 6, columns->ts[i]))
		return false;
	/* by process and generation, or by the address in any process */
	return !filter->by_site || rd_map_find(&filter->sites, process, columns->site[i]) ||
	       rd_map_find(&filter->sites, RD_NONE, columns->site[i] & PTT_SITE_ADDRESS);
}

int64_t ptt_filter_apply(const struct ptt_filter *filter, struct ptt_reader *reader,
			 const struct ptt_columns *columns, int64_t n)
{
	int64_t to = 0;

	for (int64_t i = 0; i < n; i++)
		if (rd_passes(filter, reader, columns, i))
			rd_columns_copy(columns, to++, columns, i);
	return to;
}
