/* SPDX-License-Identifier: MIT */
/* meeting.c - the places in the file of a plan, where threads wait until each asks for a lock that the next one holds. */
/*
 * All processes of the program use the places at the same time, and any process may die at any time. So there is no lock. A
 * thread claims a free place, fills it in, and only then looks for threads that close a cycle with it. Of two threads that come at
 * the same time, the later one to say that it waits sees the other.
 *
 * A place may change while another thread looks at it. Then that thread lets somebody go too early, or finds no cycle although
 * there is one. Neither does harm: the plan only makes a meeting likely.
 */
#include <linux/futex.h>

#include "platform/raw_syscall.h"
#include "steer.h"

/* After this time beyond its limit, a place belongs to a thread that died, or was left by longjmp() from a signal handler. */
#define DEAD_AFTER_NS UINT64_C(2000000000)

#define NOBODY UINT32_MAX

static uint32_t own_pid(void)
{
	return (uint32_t)ptt_raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

static uint32_t state_of(const struct ptt_steer_place *place)
{
	/* seq_cst: pairs with the store in arrive(); see the head of this file */
	return __atomic_load_n(&place->state, __ATOMIC_SEQ_CST);
}

static bool waits(const struct ptt_steer_place *place)
{
	return (state_of(place) & PTT_STEER_STATE) == PTT_STEER_WAITS;
}

/* ------------------------------------------------------------ the own place */

static bool is_free(const struct ptt_steer_place *place, uint32_t state, uint64_t now)
{
	if ((state & PTT_STEER_STATE) == PTT_STEER_FREE)
		return true;
	/* relaxed: a guess is good enough */
	return (state & PTT_STEER_STATE) != PTT_STEER_TAKEN && now > __atomic_load_n(&place->until_ns, __ATOMIC_RELAXED) + DEAD_AFTER_NS;
}

/* Claim a place. Return: its number, or NOBODY. */
static uint32_t claim(struct ptt_steer *plan, uint64_t now, uint32_t *serial)
{
	for (uint32_t i = 0; i < PTT_STEER_PLACES; i++) {
		struct ptt_steer_place *place = &plan->place[i];
		uint32_t state = state_of(place), next = (state & ~PTT_STEER_STATE) + PTT_STEER_STATE + 1;

		/* acquire: the former owner has finished with the place */
		if (is_free(place, state, now) &&
		    __atomic_compare_exchange_n(&place->state, &state, next | PTT_STEER_TAKEN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			*serial = next;
			return i;
		}
	}
	return NOBODY;
}

/* relaxed, all but the last: published by the store of the state */
static void arrive(struct ptt_steer_place *place, const struct ptt_arrival *a, uint64_t until, uint32_t serial)
{
	__atomic_store_n(&place->role, a->role, __ATOMIC_RELAXED);
	__atomic_store_n(&place->pid, own_pid(), __ATOMIC_RELAXED);
	__atomic_store_n(&place->until_ns, until, __ATOMIC_RELAXED);
	__atomic_store_n(&place->wanted, a->wanted, __ATOMIC_RELAXED);
	__atomic_store_n(&place->held_count, a->held_count, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < a->held_count; i++)
		__atomic_store_n(&place->held[i], a->held[i], __ATOMIC_RELAXED);
	/* seq_cst: before the looks at other places; pairs with state_of() */
	__atomic_store_n(&place->state, serial | PTT_STEER_WAITS, __ATOMIC_SEQ_CST);
}

/* Give the place back, unless another thread has taken it for dead. Return: was the thread let go? */
static bool leave(struct ptt_steer_place *place, uint32_t serial)
{
	uint32_t state = serial | PTT_STEER_WAITS;

	/* release: pairs with the acquire in claim() */
	if (__atomic_compare_exchange_n(&place->state, &state, serial | PTT_STEER_FREE, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		return false;
	if (state != (serial | PTT_STEER_GOES))
		return false;
	__atomic_compare_exchange_n(&place->state, &state, serial | PTT_STEER_FREE, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	return true;
}

static void wait_in(struct ptt_steer *plan, struct ptt_steer_place *place, uint32_t serial, uint64_t until)
{
	uint64_t now = ptt_now_ns();

	/* relaxed: the recorder says it once, and a thread that does not see it waits a little longer */
	while (now < until && state_of(place) == (serial | PTT_STEER_WAITS) && !__atomic_load_n(&plan->over, __ATOMIC_RELAXED)) {
		const struct timespec left = {
			.tv_sec = (time_t)((until - now) / 1000000000),
			.tv_nsec = (long)((until - now) % 1000000000),
		};

		/* returns early for a signal handler, which has run by then */
		ptt_raw_futex(&place->state, FUTEX_WAIT, serial | PTT_STEER_WAITS, &left);
		now = ptt_now_ns();
	}
}

/* ------------------------------------------------------------ the others */

static void let_go(struct ptt_steer_place *place)
{
	uint32_t state = state_of(place);

	if ((state & PTT_STEER_STATE) != PTT_STEER_WAITS)
		return;
	/* release: pairs with the look of the owner in wait_in() */
	if (__atomic_compare_exchange_n(&place->state, &state, state + PTT_STEER_GOES - PTT_STEER_WAITS, false, __ATOMIC_RELEASE,
					__ATOMIC_RELAXED))
		ptt_raw_futex(&place->state, FUTEX_WAKE, 1, NULL);
}

static bool holds(const struct ptt_steer_place *place, uint64_t object)
{
	/* relaxed, both: the caller has seen the state */
	uint32_t count = __atomic_load_n(&place->held_count, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i < count && i < PTT_STEER_HELD; i++)
		if (__atomic_load_n(&place->held[i], __ATOMIC_RELAXED) == object)
			return true;
	return false;
}

static bool is_of_same_process(const struct ptt_steer_place *a, const struct ptt_steer_place *b)
{
	return __atomic_load_n(&a->pid, __ATOMIC_RELAXED) == __atomic_load_n(&b->pid, __ATOMIC_RELAXED);
}

/* Is the place of a thread of the calling process? */
static bool is_own(const struct ptt_steer_place *place)
{
	return __atomic_load_n(&place->pid, __ATOMIC_RELAXED) == own_pid();
}

/* Search breadth first, so that the shortest cycle is found. Return: did @me close a cycle, whose threads now go on? */
static bool close_cycle(struct ptt_steer *plan, uint32_t me)
{
	uint8_t queue[PTT_STEER_PLACES], asker[PTT_STEER_PLACES];
	uint64_t seen = UINT64_C(1) << me;
	uint32_t head = 0, tail = 0, i;

	_Static_assert(PTT_STEER_PLACES == 64, "a bit of a word for each place");
	queue[tail++] = (uint8_t)me;
	while (head < tail) {
		uint32_t at = queue[head++];
		uint64_t wanted = __atomic_load_n(&plan->place[at].wanted, __ATOMIC_RELAXED);

		for (i = 0; i < PTT_STEER_PLACES; i++) {
			struct ptt_steer_place *place = &plan->place[i];

			if (seen >> i & 1 || !waits(place) || !is_of_same_process(place, &plan->place[me]) || !holds(place, wanted))
				continue;
			seen |= UINT64_C(1) << i;
			asker[i] = (uint8_t)at;
			queue[tail++] = (uint8_t)i;
			if (!holds(&plan->place[me], __atomic_load_n(&place->wanted, __ATOMIC_RELAXED)))
				continue;
			for (; i != me; i = asker[i])
				let_go(&plan->place[i]);
			return true;
		}
	}
	return false;
}

/* Two roles may have the same sites. Then each thread at these sites has either role. */
static bool is_alike(const struct ptt_steer *plan, uint32_t a, uint32_t b)
{
	return a < plan->roles && plan->role[a].asked == plan->role[b].asked && plan->role[a].held == plan->role[b].held;
}

/* A waiting thread for a role, in another process if possible. @used: places to pass over. Return: a place, or NOBODY. */
static uint32_t with_role(struct ptt_steer *plan, uint32_t role, uint32_t me, uint64_t used)
{
	uint32_t best = NOBODY;

	for (uint32_t i = 0; i < PTT_STEER_PLACES; i++) {
		struct ptt_steer_place *place = &plan->place[i];

		if (used >> i & 1 || !waits(place) || !is_alike(plan, __atomic_load_n(&place->role, __ATOMIC_RELAXED), role))
			continue;
		best = i;
		if (!is_of_same_process(place, &plan->place[me]))
			break;
	}
	return best;
}

/* Return: is there a thread for each role, if need be in several processes? These threads now go on. */
static bool meet_by_roles(struct ptt_steer *plan, uint32_t me, uint32_t own_role)
{
	uint64_t used = UINT64_C(1) << me;
	bool several = plan->role[own_role].meets == PTT_STEER_BY_ROLES;

	for (uint32_t role = 0; role < plan->roles; role++) {
		uint32_t with = role == own_role ? me : with_role(plan, role, me, used);

		if (with == NOBODY)
			return false;
		used |= UINT64_C(1) << with;
		several |= !is_of_same_process(&plan->place[with], &plan->place[me]);
	}
	for (uint32_t i = 0; several && i < PTT_STEER_PLACES; i++)
		if (used >> i & 1 && i != me)
			let_go(&plan->place[i]);
	return several;
}

static bool meets_others(struct ptt_steer *plan, uint32_t me, uint32_t role)
{
	if (plan->role[role].after)
		return false;
	return plan->role[role].meets == PTT_STEER_BY_LOCKS ? close_cycle(plan, me) : meet_by_roles(plan, me, role);
}

/* Does a thread of the process wait already in a role that only one thread at a time has? */
static bool is_second(struct ptt_steer *plan, uint32_t role)
{
	for (uint32_t i = 0; plan->role[role].meets == PTT_STEER_FIRST && i < PTT_STEER_PLACES; i++)
		/* relaxed, both: two threads that come at the same time may both wait */
		if (waits(&plan->place[i]) && __atomic_load_n(&plan->place[i].role, __ATOMIC_RELAXED) == role && is_own(&plan->place[i]))
			return true;
	return false;
}

bool ptt_meet(struct ptt_steer *plan, const struct ptt_arrival *arrival)
{
	uint64_t now = ptt_now_ns(), until = now + plan->patience_ns;
	uint32_t serial, me = is_second(plan, arrival->role) ? NOBODY : claim(plan, now, &serial);
	struct ptt_steer_place *place = &plan->place[me % PTT_STEER_PLACES];

	if (me == NOBODY)
		return false;
	/* relaxed: a count */
	__atomic_fetch_add(&plan->role[arrival->role].came, 1, __ATOMIC_RELAXED);
	arrive(place, arrival, until, serial);
	if (meets_others(plan, me, arrival->role)) {
		leave(place, serial);
		/* relaxed: a count */
		__atomic_fetch_add(&plan->met, 1, __ATOMIC_RELAXED);
		return true;
	}
	wait_in(plan, place, serial, until);
	return leave(place, serial);
}

void ptt_meet_passed(struct ptt_steer *plan, uint32_t site)
{
	for (uint32_t i = 0; i < PTT_STEER_PLACES; i++) {
		struct ptt_steer_place *place = &plan->place[i];
		uint32_t role = __atomic_load_n(&place->role, __ATOMIC_RELAXED);

		if (waits(place) && role < plan->roles && plan->role[role].after == site && is_own(place)) {
			let_go(place);
			__atomic_fetch_add(&plan->met, 1, __ATOMIC_RELAXED);
		}
	}
}
