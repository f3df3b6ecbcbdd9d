/* SPDX-License-Identifier: MIT */
/* edges.c - requests for locks by threads that hold other locks. */
#include "../holds.h"

/* Keeps in edge->guard the other locks that the thread holds this time as well. */
static void guard(const struct ptt_model *m, struct ptt_model_edge *edge, uint32_t thread, bool first)
{
	uint32_t kept = 0;

	if (first) {
		for (uint32_t i = MD_THREAD(m, thread)->pub.holds; i && kept < 4; i = MD_HOLD(m, i)->thread_next)
			if (MD_HOLD(m, i)->object != edge->held && MD_HOLD(m, i)->kind != PTT_KIND_SEM)
				edge->guard[kept++] = MD_HOLD(m, i)->object;
		return;
	}
	for (uint32_t i = 0; i < 4 && edge->guard[i]; i++)
		if (tk_hold_find(&m->t, thread, edge->guard[i]))
			edge->guard[kept++] = edge->guard[i];
	while (kept < 4)
		edge->guard[kept++] = 0;
}

/* Edges begin at this many of the last holds of a thread: n holds at once would make n² edges. */
#define EDGES_FROM 64u

void md_edges(struct ptt_model *m, const struct tk_event *e, uint32_t object, uint8_t mode, bool blocked)
{
	uint32_t left = EDGES_FROM;
	const struct md_thread *t = MD_THREAD(m, e->thread);
	uint32_t site = md_site(m, e->thread, e->site, MD_OBJECT(m, object)->pub.kind);

	if (!md_in_window(m, e->ts))
		return;
	for (uint32_t i = t->pub.holds; i && left--; i = MD_HOLD(m, i)->thread_next) {
		const struct md_hold *h = MD_HOLD(m, i);
		struct ptt_model_edge *edge;
		bool made;

		/* Only later events show whether a semaphore was held. */
		if (h->object == object || h->kind == PTT_KIND_SEM)
			continue;
		edge = &((struct ptt_model_edge *)(void *)m->edges.items)[md_lookup(
			m, &m->edge_of, &m->edges, (uint64_t)h->object << 32 | object, (uint64_t)h->mode << 1 | mode,
			&made)];
		if (made)
			*edge = (struct ptt_model_edge){
				.first_ns = e->ts, .held = h->object, .wanted = object, .held_site = h->site_row,
				.wanted_site = site, .thread = e->thread, .threads = 1, .held_mode = h->mode,
				.wanted_mode = mode, .tries = 1,
			};
		guard(m, edge, e->thread, made);
		edge->n++;
		edge->blocked |= blocked;
		edge->tries &= t->trying || tk_meanings[e->id].how == TK_TRIED;
		if (edge->thread != e->thread)
			edge->threads = 2;
	}
}
