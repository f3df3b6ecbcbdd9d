/* SPDX-License-Identifier: MIT */
/* steer_meeting.c - threads that are held back meet if each asks for a lock that the next one holds, and only then. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "steer.h"

#define LONG_NS UINT64_C(20000000000) /* nobody waits so long, unless the test fails */
#define SHORT_NS UINT64_C(20000000)

static struct ptt_steer *plan;

struct visitor {
	struct ptt_arrival arrival;
	pthread_t thread;
	bool met;
};

static void fail(const char *what)
{
	printf("%s\n", what);
	exit(1);
}

static void *visit(void *of)
{
	struct visitor *v = of;

	v->met = ptt_meet(plan, &v->arrival);
	return NULL;
}

static void begin(struct visitor *v, uint64_t held, uint64_t wanted)
{
	*v = (struct visitor){.arrival = {.held = {held}, .held_count = 1, .wanted = wanted}};
	pthread_create(&v->thread, NULL, visit, v);
}

static bool end(struct visitor *v)
{
	pthread_join(v->thread, NULL);
	return v->met;
}

static void renew(uint64_t patience_ns)
{
	memset(plan, 0, sizeof(*plan));
	plan->roles = 2;
	plan->patience_ns = patience_ns;
}

/* Four threads, of which three close a cycle. */
static void test_cycle(void)
{
	struct visitor v[4];

	renew(LONG_NS);
	begin(&v[0], 1, 2);
	begin(&v[1], 2, 3);
	begin(&v[2], 3, 1);
	if (!end(&v[0]) || !end(&v[1]) || !end(&v[2]))
		fail("three threads have not met");
	if (plan->met < 1)
		fail("nobody counted the meeting");
	renew(SHORT_NS);
	begin(&v[0], 1, 2);
	begin(&v[1], 2, 3);
	begin(&v[2], 3, 4);
	begin(&v[3], 1, 4);
	if (end(&v[0]) || end(&v[1]) || end(&v[2]) || end(&v[3]) || plan->met)
		fail("threads met without a cycle");
}

static void test_after(void)
{
	struct visitor v;

	renew(LONG_NS);
	plan->role[0].after = 7;
	begin(&v, 1, 2);
	/* as another thread that passes the site again and again, since nobody knows when the thread waits */
	while (!__atomic_load_n(&plan->met, __ATOMIC_RELAXED)) {
		ptt_meet_passed(plan, 6);
		ptt_meet_passed(plan, 7);
	}
	if (!end(&v))
		fail("the thread did not notice that another thread passed");
	if (plan->role[0].came != 1)
		fail("the role does not tell that a thread was held back");
	/* a thread of another process waits */
	plan->place[9] = (struct ptt_steer_place){.state = PTT_STEER_WAITS, .pid = (uint32_t)getpid() + 1};
	plan->met = 0;
	ptt_meet_passed(plan, 7);
	if (plan->place[9].state != PTT_STEER_WAITS || plan->met)
		fail("a thread of another process was let go");
}

static void test_over(void)
{
	struct visitor v;

	renew(LONG_NS);
	plan->over = 1;
	begin(&v, 1, 2);
	if (end(&v))
		fail("the thread met nobody");
}

/* Two processes, in which the locks have other addresses. */
static void test_across(void)
{
	struct ptt_arrival here = {.held = {1}, .held_count = 1, .wanted = 2, .role = 0};
	struct ptt_arrival there = {.held = {20}, .held_count = 1, .wanted = 10, .role = 1};
	int status;
	pid_t child;

	renew(LONG_NS);
	plan->role[0].meets = plan->role[1].meets = PTT_STEER_BY_PROCESSES;
	plan->role[1].held = 1;
	child = fork();
	if (child == 0)
		_exit(ptt_meet(plan, &there) ? 0 : 1);
	if (!ptt_meet(plan, &here) || waitpid(child, &status, 0) != child || status != 0)
		fail("two processes have not met");
}

/* Threads at the same sites, which have taken a lock each. */
static void test_roles(void)
{
	struct visitor v[2];

	renew(LONG_NS);
	plan->role[0].meets = plan->role[1].meets = PTT_STEER_BY_ROLES;
	begin(&v[0], 1, 0);
	begin(&v[1], 2, 0);
	if (!end(&v[0]) || !end(&v[1]))
		fail("two threads have not met");
	renew(SHORT_NS);
	plan->role[0].meets = plan->role[1].meets = PTT_STEER_BY_ROLES;
	plan->role[1].held = 1;
	begin(&v[0], 1, 0);
	begin(&v[1], 2, 0);
	if (end(&v[0]) || end(&v[1]))
		fail("two threads of one role met");
}

/* A process is killed while its thread waits; its place is given to others when nobody waits so long any more. */
static void test_death(void)
{
	uint32_t i;

	renew(SHORT_NS);
	for (i = 0; i < PTT_STEER_PLACES; i++) {
		plan->place[i].state = PTT_STEER_WAITS;
		plan->place[i].until_ns = ptt_now_ns() + LONG_NS;
	}
	if (ptt_meet(plan, &(struct ptt_arrival){.wanted = 1}) || plan->place[5].state != PTT_STEER_WAITS)
		fail("a thread took the place of another thread");
	plan->place[5].until_ns = 1;
	if (ptt_meet(plan, &(struct ptt_arrival){.wanted = 1}) || (plan->place[5].state & PTT_STEER_STATE) != PTT_STEER_FREE)
		fail("the place of a dead thread was not used again");
}

int main(void)
{
	plan = mmap(NULL, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (plan == MAP_FAILED)
		return 1;
	test_cycle();
	test_after();
	test_over();
	test_across();
	test_roles();
	test_death();
	return 0;
}
