/* SPDX-License-Identifier: MIT */
/* turns.c - the rows of processors, with the turns of threads, from the states of threads. */
/*
 * In a turn, a thread has a processor without a break. The next state of the thread says how the turn ended. A
 * thread in a long wait reports its states before the wait late. So turns are kept until many more turns have ended. Then they
 * go into their tracks in the order of time, which keeps the nodes of the trees short.
 */
#include "drawing.h"

#define MOST_KEPT (UINT32_C(1) << 19) /* turns of 24 bytes */

_Static_assert(sizeof(struct dt_turn) == 24, "turn");

static int by_begin(const void *a, const void *b)
{
	const struct dt_turn *x = a, *y = b;

	return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Puts the @n earliest finished turns into their tracks. */
static int draw(struct ptt_detail *d, uint32_t n)
{
	struct dt_turns *turns = &d->turns;
	int err = 0;

	if (turns->ended_count)
		qsort(turns->ended, turns->ended_count, sizeof(*turns->ended), by_begin);
	for (uint32_t i = 0; i < n && !err; i++) {
		const struct dt_turn *turn = &turns->ended[i];

		err = dt_put(d, PTT_DETAIL_PROCESSORS, turn->cpu + 1u, 0, turn->state, &(struct dt_record){
			.begin = turn->begin, .end = turn->end, .other = turn->thread, .open = turn->open,
		});
	}
	if (n) {
		turns->ended_count -= n;
		memmove(turns->ended, turns->ended + n, turns->ended_count * sizeof(*turns->ended));
	}
	return err;
}

static int end_turn(struct ptt_detail *d, struct dt_turn *turn, uint8_t state, bool open)
{
	struct dt_turns *turns = &d->turns;

	if (dt_more((void **)&turns->ended, &turns->ended_room, turns->ended_count + 1, sizeof(*turns->ended)) < 0)
		return -ENOMEM;
	turn->state = state;
	turn->open = open;
	turns->ended[turns->ended_count++] = *turn;
	turn->state = 0;
	return turns->ended_count < MOST_KEPT ? 0 : draw(d, MOST_KEPT / 2);
}

int dt_turns_feed(struct ptt_detail *d, const struct ptt_model_state *s)
{
	bool runs = s->state == PTT_STATE_RUNNING && s->cpu != UINT16_MAX, follows;
	bool preempted = s->state == PTT_STATE_READY || s->state == PTT_STATE_PREEMPTED;
	struct dt_turns *turns = &d->turns;
	struct dt_turn *turn;
	int err = 0;

	if (!s->dur_ns || (!runs && s->thread >= turns->now_room))
		return 0;
	if (s->thread == UINT32_MAX ||
	    dt_more((void **)&turns->now, &turns->now_room, s->thread + 1, sizeof(*turns->now)) < 0)
		return -ENOMEM;
	turn = &turns->now[s->thread];
	follows = turn->state && turn->end == s->t_ns;
	if (turn->state && !(runs && follows && turn->cpu == s->cpu)) {
		bool known = follows && !runs && s->state != PTT_STATE_UNKNOWN;

		err = end_turn(d, turn, known && preempted ? PTT_DETAIL_PREEMPTED : PTT_DETAIL_RUNNING, !known);
	}
	if (!runs)
		return err;
	if (!turn->state)
		*turn = (struct dt_turn){
			.begin = s->t_ns, .thread = s->thread, .cpu = s->cpu, .state = PTT_DETAIL_RUNNING,
		};
	turn->end = s->t_ns + s->dur_ns;
	return err;
}

int ptt_detail_end(struct ptt_detail *d)
{
	int err = d->finished ? -EROFS : 0;

	for (uint32_t i = 0; i < d->turns.now_room && !err; i++)
		if (d->turns.now[i].state)
			err = end_turn(d, &d->turns.now[i], PTT_DETAIL_RUNNING, true);
	return err ? err : draw(d, d->turns.ended_count);
}

void dt_turns_free(struct dt_turns *turns)
{
	free(turns->now);
	free(turns->ended);
	*turns = (struct dt_turns){ 0 };
}
