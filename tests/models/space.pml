/* SPDX-License-Identifier: MIT */
/* space.pml - model of waiting for room: writers, a signal handler, the collector that frees and wakes, and its end. */
/*
 * ring.pml proves the steps within chunks. Here a chunk holds one event, so that room is always short, and revocation is one
 * step. The model covers chunk.c's loop around segment.space, segment.waiters and searched_at, the futex in between, and the
 * ends of a collector: none, a kill, or the end of the recording.
 *
 * A writer that sleeps checks every 50 ms whether a collector still lives. The model takes this step only if the collector is
 * dead, or has stood still for longer than writers wait, so the step never makes up for a missed wake. The handler may stay for
 * ever in the program's code after its event: others must not wait for the handler.
 *
 * With -DRESERVE=1 the first chunk is for real-time threads only. A single real-time thread takes the place of the handler, and
 * never sleeps.
 *
 * Checked: no thread sleeps for ever while there is a free chunk, or while no collector can free a chunk. Every event is
 * drained, left in a chunk for recovery, or counted as lost. The real-time thread always finds room.
 *
 *     spin -a space.pml && cc -O2 -DCOLLAPSE -DSAFETY -o pan pan.c && ./pan -m200000
 *
 * Larger, by hand: -DB_EVENTS=2 and -DCHUNKS=3, given to spin.
 */
#ifndef A_EVENTS
#define A_EVENTS 1
#endif
#ifndef B_EVENTS
#define B_EVENTS 1
#endif
#ifndef CHUNKS
#define CHUNKS 2
#endif
#ifndef RESERVE
#define RESERVE 0
#endif
#ifdef GREEDY
#define FIRST 0 /* a bug: all threads look in the reserve */
#else
#define FIRST RESERVE
#endif
#define NONE 7
#define NEVER 255

#define FREE 0
#define CLAIMED 1
#define OWNED 2
#define FULL 3

/* The threads: A, which its signal handler interrupts, and B. */
#define A 0
#define B 1
/* Who may sleep: A itself, its handler, B. */
#define SLEEPERS 3

byte status[CHUNKS];
bool slot[CHUNKS];      /* the one event is written */
byte head_chunk[2] = NONE;
bool head_used[2];
byte changes[2];
byte searched_at[2] = NEVER;

byte space;
byte waiters;
bool asleep[SLEEPERS];
bool alive = true;      /* a thread of the collector's lives */
bool stalled;           /* the collector has stood still for too long */
bool has_stalled;
bool closed;

bool in_handler;
bool stays;             /* the handler does not return */
byte finished = (RESERVE != 0); /* of the two threads and the handler */
bool b_finished;
byte drained;
byte lost;

#define STANDS(t) (t == A && in_handler)

/* claim_in_range(): each chunk is a compare and swap of its own. */
inline claim(mine, first, end)
{
	mine = first;
	do
	:: mine == end -> mine = NONE; break
	:: else ->
		atomic {
			if
			:: status[mine] == FREE -> status[mine] = CLAIMED; break
			:: else -> mine++
			fi
		}
	od
}

inline wake(most, i)
{
	i = 0;
	do
	:: i == SLEEPERS || most == 0 -> break
	:: else ->
		if
		:: asleep[i] -> asleep[i] = false; most--
		:: else
		fi;
		i++
	od
}

/* bump and wake, as wake_writers() has it */
inline bump(most, n, i)
{
	space++;
	if
	:: waiters > 0 -> atomic { n = most; wake(n, i); n = 0; i = 0 }
	:: else
	fi
}

/* refill(t, who): outcome in `got`, which is false if the event was lost. */
inline refill(t, who)
{
	do
	:: true ->
		seen = space;
		if
		:: closed -> lost++; got = false; break
		:: else
		fi;
		if
		:: seen == searched_at[t] -> mine = NONE
		:: else ->
			claim(mine, FIRST, CHUNKS);
			if
			:: mine == NONE -> searched_at[t] = seen
			:: else
			fi
		fi;
		if
		:: mine != NONE ->
			slot[mine] = false;
			status[mine] = OWNED;
			atomic {
				won = (changes[t] == hn && head_chunk[t] == hc);
				if
				:: won -> head_chunk[t] = mine; head_used[t] = false; changes[t]++
				:: else
				fi
			}
			if
			:: won && hc != NONE ->
				atomic {
					if
					:: status[hc] == OWNED -> status[hc] = FULL
					:: else
					fi
				}
			:: won && hc == NONE
			:: !won -> /* a signal handler was faster: the chunk goes back, and threads that searched in vain learn of it */
				status[mine] = FREE;
#ifndef SILENT
				bump(1, n, i)
#endif
			fi;
			break
		:: else
		fi;
		if
		:: changes[t] != hn -> break
		:: else
		fi;
		if
		:: !alive || stalled -> lost++; got = false; break
		:: else
		fi;
		waiters++;
		atomic { /* the kernel compares before it lets a thread sleep */
			if
			:: space == seen -> asleep[who] = true
			:: else
			fi
		}
		(!asleep[who] || !alive || stalled);
		asleep[who] = false;
		waiters--
	od
}

inline put(t, who)
{
	got = true;
	do
	:: !got -> break
	:: else ->
		atomic { hc = head_chunk[t]; hn = changes[t]; used = head_used[t] }
		if
		:: hc == NONE || used -> refill(t, who)
		:: else ->
			atomic {
				won = (changes[t] == hn && !head_used[t]);
				if
				:: won -> head_used[t] = true
				:: else
				fi
			}
			if
			:: won -> assert(!slot[hc]); slot[hc] = true; break
			:: else
			fi
		fi
	od
}

proctype thread_a() provided (!in_handler)
{
	byte hc, hn, seen, mine, n, i, k;
	bool used, won, got;

	for (k : 1 .. A_EVENTS) {
		put(A, 0)
	}
	finished++
}

proctype handler_a()
{
	byte hc, hn, seen, mine, n, i;
	bool used, won, got;

	/* a signal interrupts a sleep on a futex, and the sleep starts again afterwards */
	atomic { in_handler = true; asleep[0] = false }
	put(A, 1);
	atomic {
		finished++;
		if
		:: in_handler = false
		:: stays = true
		fi
	}
}

proctype thread_b()
{
	byte hc, hn, seen, mine, n, i, k;
	bool used, won, got;

	for (k : 1 .. B_EVENTS) {
		put(B, 2)
	}
	finished++;
	b_finished = true
}

bool r_finished = (RESERVE == 0);

/* The real-time thread: one event, and its end, which leaves the chunk to the collector. Each claim is one step. */
proctype real_time()
{
	byte mine;

	atomic { claim(mine, RESERVE, CHUNKS) }
	atomic {
		if
		:: mine == NONE -> claim(mine, 0, RESERVE)
		:: else
		fi;
		assert(mine != NONE)
	}
	atomic { slot[mine] = true; status[mine] = FULL; r_finished = true }
}

#define DRAINABLE(c) (slot[c] && status[c] == FULL)
/* the collector may take an idle thread's chunk if a thread waits for it and no event in it is half written */
#define REVOCABLE(c, t) (waiters > 0 && status[c] == OWNED && head_chunk[t] == c && slot[c])
#define TO_DO(c) (DRAINABLE(c) || REVOCABLE(c, A) || REVOCABLE(c, B))
/* each thread that can go on has done so */
#define DONE (b_finished && r_finished && (finished == 3 || stays))

active proctype collector()
{
	byte c, n, i;

	do
	:: (TO_DO(0) || TO_DO(1) || TO_DO(CHUNKS - 1)) ->
		atomic {
			c = NONE;
			if
			:: TO_DO(0) -> c = 0
			:: TO_DO(1) -> c = 1
			:: TO_DO(CHUNKS - 1) -> c = CHUNKS - 1
			:: else
			fi;
			if
			:: c != NONE && head_chunk[A] == c -> head_chunk[A] = NONE; changes[A]++
			:: c != NONE && head_chunk[B] == c -> head_chunk[B] = NONE; changes[B]++
			:: else
			fi;
			if
			:: c != NONE -> status[c] = FULL
			:: else
			fi
		}
		if
		:: c != NONE ->
			atomic { slot[c] = false; drained++; status[c] = FREE }
			bump(1, n, i)
		:: else
		fi
	:: !has_stalled -> has_stalled = true; stalled = true; stalled = false /* stopped, and continued */
	:: closed = true; bump(SLEEPERS, n, i); break
	:: alive = false; break /* killed, or killed before it could */
	:: atomic { DONE && !(TO_DO(0) || TO_DO(1) || TO_DO(CHUNKS - 1)) -> closed = true; break }
	od;
	atomic { DONE -> in_handler = false }; /* if it stayed, it may go now */
	(finished == 3 && r_finished);
	/* events in chunks are now for the last drain, or for the recovery */
	assert(drained + lost + slot[0] + slot[1] + slot[CHUNKS - 1] * (CHUNKS - 2) == A_EVENTS + B_EVENTS + 1)
}

init {
	atomic {
		run thread_a(); run thread_b();
		if
		:: RESERVE -> run real_time()
		:: else -> run handler_a()
		fi
	}
}
