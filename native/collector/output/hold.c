/* SPDX-License-Identifier: MIT */
/* hold.c - shows writers that a collector lives, and that it makes progress. */
/*
 * When a thread dies, the kernel marks the words of its robust list. The C library keeps the links of its list beside the words.
 * Here the program could write to these links, and a wild store would decide where the recorder writes. So a thread of the
 * collector has a list of its own: the links are in private memory, and only the word is in the segment. The thread sleeps
 * until the collector ends. It dies with its process.
 */
#include "../collector.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_SIZE (64u << 10)

enum { BEGINS, HOLDS, REFUSED, LETS_GO };

struct hold {
	struct robust_list_head list;
	struct robust_list link;
	pthread_t thread;
	uint32_t *word;
	uint32_t state; /* futex: one of these */
};

static void wait_while(uint32_t *word, uint32_t value)
{
	/* acquire: pairs with the release of set_state() */
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value)
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void set_state(struct hold *hold, uint32_t state)
{
	/* release: pairs with the acquire of wait_while() */
	__atomic_store_n(&hold->state, state, __ATOMIC_RELEASE);
	syscall(SYS_futex, &hold->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Return: true if nobody held the word, or its holder is dead, and now @tid holds it. */
static bool take(uint32_t *word, uint32_t tid)
{
	/* relaxed, both: writers only check whether a collector lives */
	uint32_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);

	return (!seen || seen & FUTEX_OWNER_DIED) &&
	       __atomic_compare_exchange_n(word, &seen, tid, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static void *hold_on(void *argument)
{
	struct hold *hold = argument;
	uint32_t tid = (uint32_t)syscall(SYS_gettid);

	/* the kernel marks the word only if it has the id of the thread */
	hold->link.next = &hold->list.list;
	hold->list.list.next = &hold->link;
	hold->list.futex_offset = (long)((char *)hold->word - (char *)&hold->link);
	syscall(SYS_set_robust_list, &hold->list, sizeof(hold->list));
	if (!take(hold->word, tid)) {
		set_state(hold, REFUSED);
		return NULL;
	}
	set_state(hold, HOLDS);
	wait_while(&hold->state, HOLDS);
	/* relaxed: if the program has changed the word, the word stays as it is */
	__atomic_compare_exchange_n(hold->word, &tid, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return NULL;
}

static int begin(struct hold *hold)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	/* other threads of the recorder handle its signals; SIGBUS goes to the thread that caused it */
	sigfillset(&all);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&hold->thread, &attr, hold_on, hold);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}

/* hold_begin - Return: 0, -EBUSY if another collector is at work, or -errno. */
int hold_begin(struct ptt_collector *c, struct ptt_message *message)
{
	struct hold *hold = calloc(1, sizeof(*hold));
	int err = -ENOMEM;

	if (hold) {
		hold->word = &c->segment->collector;
		err = begin(hold);
	}
	if (err) {
		free(hold);
		return fail(message, err, "cannot start the thread that shows that the recorder lives");
	}
	wait_while(&hold->state, BEGINS);
	if (hold->state == REFUSED) {
		pthread_join(hold->thread, NULL);
		free(hold);
		return fail(message, -EBUSY, "the recorder (pid %u) is still at work", c->head.recorder_pid);
	}
	c->hold = hold;
	hold_beat(c);
	return 0;
}

/* hold_end - show writers that there is no collector any more */
void hold_end(struct ptt_collector *c)
{
	if (!c->hold)
		return;
	set_state(c->hold, LETS_GO);
	pthread_join(c->hold->thread, NULL);
	free(c->hold);
	c->hold = NULL;
}

/* hold_beat - show waiting writers that the collector makes progress */
void hold_beat(struct ptt_collector *c)
{
	c->beat = c->beat + 1 ? c->beat + 1 : 1;
	/* relaxed: pairs with ptt_wait_for_collector(), which only checks whether the value changes */
	__atomic_store_n(&c->segment->beat, c->beat, __ATOMIC_RELAXED);
}
