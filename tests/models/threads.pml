/* SPDX-License-Identifier: MIT */
/* threads.pml - model of thread entries: claimed, registered, ended or reaped, drained, given back, claimed by another thread. */
/*
 * Two entries, and two threads that may want them. A signal handler that traces may interrupt P's thread anywhere, also within
 * ptt_ring_enter_thread() and ptt_ring_thread_end(). Q's process may be killed anywhere. Events go to their entry in one step,
 * which ring.pml proves to be sound; but Q can be killed between the reservation and the write.
 *
 * Checked: no entry has two owners; no thread writes to an entry that was given back; no entry is given back before it is
 * drained; every event is drained once, in the order of times within the entry, or counted with the process for want of an
 * entry; in the end every entry is free, except an entry that a late handler keeps until its process ends.
 *
 *     spin -a threads.pml && cc -O2 -DCOLLAPSE -DSAFETY -o pan pan.c && ./pan -m200000
 *
 * With -DREAP -DQ_LIVES=0, given to spin, the collector asks the kernel for threads at any pass, and such an entry is free
 * before that. With -DHASTY as well, the collector asks for threads with empty entries, and finds no such thread.
 * Larger, by hand: -DREAP, or -DP_LIVES=3 -DQ_LIVES=2.
 */
#ifndef P_LIVES
#define P_LIVES 2 /* threads of P, one after the other */
#endif
#ifndef Q_LIVES
#define Q_LIVES 1
#endif
#define ENTRIES 2
#define NOWHERE 7
#define ROOM 4 /* events of an entry that are not drained yet; the last is the hole that a kill leaves */

#define P 1
#define Q 2

#define LIVE 1
#define ENDED 2

byte owner[ENTRIES];    /* thread_owner */
byte state[ENTRIES];    /* thread.state */
byte life[ENTRIES];     /* the owner in the model: thread and generation */
byte pending[ENTRIES];  /* written and not drained */
bool hole[ENTRIES];     /* reserved, and never to be written */
byte time_written[ENTRIES]; /* of the youngest event in it */
byte time_drained[ENTRIES];
byte lost[3];           /* process.lost_threads */
byte written;
byte drained;
byte clock = 1;

byte self_p = NOWHERE;  /* ptt_ring_self of P's thread */
bool in_handler;
bool killed_q;
bool p_over, q_over, handler_over;
bool gone[3];           /* the recorder has seen the process end */

/* claim_thread(): each entry is a compare and swap of its own. */
inline claim(mine, process, lives)
{
	mine = 0;
	do
	:: mine == ENTRIES -> mine = NOWHERE; break
	:: else ->
		atomic {
			if
			:: owner[mine] == 0 ->
				assert(life[mine] == 0 && pending[mine] == 0 && !hole[mine] && state[mine] == 0);
				owner[mine] = process; life[mine] = lives;
				break
			:: else -> mine++
			fi
		}
	od
}

/* Reserve and write; the clock is read in the step that reserves. */
inline write(entry, lives)
{
	atomic {
		assert(life[entry] == lives && owner[entry] != 0);
		assert(clock > time_drained[entry] && clock > time_written[entry]);
		time_written[entry] = clock; clock++;
		pending[entry]++; written++
	}
}

/* put of P: registers first if the thread has not registered */
inline put_p(lives)
{
	entry = self_p;
	if
	:: entry == NOWHERE ->
		claim(mine, P, lives);
		if
		:: mine == NOWHERE -> lost[P]++
		:: else ->
			atomic { /* ptt_ring_take_entry */
				won = (self_p == NOWHERE);
				if
				:: won -> self_p = mine
				:: else
				fi
			}
			if
			:: won -> state[mine] = LIVE
			:: else -> /* a signal handler has registered this thread */
				atomic { assert(pending[mine] == 0); life[mine] = 0; owner[mine] = 0 }
			fi;
			entry = self_p;
			write(entry, lives)
		fi
	:: else -> write(entry, lives)
	fi
}

#define LIFE_P(n) (n)
#define LIFE_Q(n) (8 + n)

byte life_p = 1;

proctype thread_p() provided (!in_handler)
{
	byte entry, mine, k;
	bool won;

	for (k : 1 .. P_LIVES) {
		/* each thread has its own thread-local storage; an entry that a late handler of the last thread took stays */
		atomic { life_p = LIFE_P(k); self_p = NOWHERE }
		put_p(LIFE_P(k));
		/* ptt_ring_thread_end */
		entry = self_p;
		if
		:: entry != NOWHERE ->
			self_p = NOWHERE;
			state[entry] = ENDED
		:: else
		fi
	}
	p_over = true
}

proctype handler_p()
{
	byte entry, mine;
	bool won;

	in_handler = true;
	if
	:: !p_over -> put_p(life_p)
	:: else -> lost[P]++ /* no thread any more: let it count as if it had happened */
	fi;
	atomic { handler_over = true; in_handler = false }
}

proctype thread_q()
{
	byte entry = NOWHERE, k;

	{
#if Q_LIVES
		for (k : 1 .. Q_LIVES) {
			claim(entry, Q, LIFE_Q(k));
			if
			:: entry == NOWHERE -> lost[Q]++
			:: else ->
				atomic { state[entry] = LIVE; hole[entry] = true }; /* reserved */
				atomic { hole[entry] = false; write(entry, LIFE_Q(k)) }
				state[entry] = ENDED
			fi
		}
#endif
		q_over = true
	} unless { killed_q }
}

active proctype killer()
{
	killed_q = true
}

#define EXITED(process) (process == P && p_over && handler_over || process == Q && (killed_q || q_over))

bool ended[ENTRIES];
bool entry_gone[ENTRIES];

inline tell(process)
{
	entry_gone[0] = entry_gone[0] || owner[0] == process;
	entry_gone[1] = entry_gone[1] || owner[1] == process;
	gone[process] = true
}

inline look(i)
{
	atomic {
		if
		:: owner[i] == 0 -> ended[i] = false
		:: else -> ended[i] = (entry_gone[i] || state[i] == ENDED)
		fi
	}
}

#define THREAD_OVER(i) (owner[i] == P && (life[i] != life_p || EXITED(P)) || owner[i] == Q && EXITED(Q))
#ifdef HASTY
#define DEAD(i) (state[i] == 0 || THREAD_OVER(i))
#else
#define DEAD(i) (state[i] == LIVE && THREAD_OVER(i))
#endif

/* The kernel no longer knows a thread that is over; the events of the thread wait for the next drain. */
inline reap(i)
{
	if
	:: atomic { owner[i] != 0 && !ended[i] && DEAD(i) -> entry_gone[i] = true; ended[i] = true }
	:: true
	fi
}

inline drain(i)
{
	atomic {
		if
		:: pending[i] > 0 ->
			assert(time_written[i] > time_drained[i]);
			drained = drained + pending[i]; pending[i] = 0; time_drained[i] = time_written[i]
		:: !ended[i] || pending[i] == 0
		fi
	}
}

inline recycle(i)
{
	if
	:: atomic {
		ended[i] && pending[i] == 0 && owner[i] != 0 ->
		assert(!hole[i] || entry_gone[i]);
		state[i] = 0;
		entry_gone[i] = false; ended[i] = false
	   }
		atomic {
			assert(pending[i] == 0);
			assert(EXITED(P) || owner[i] != P || life[i] != life_p || self_p != i);
			hole[i] = false; life[i] = 0; owner[i] = 0
		}
	:: else
	fi
}

active proctype collector()
{

	do
	:: p_over && handler_over && (q_over || killed_q) && gone[P] && gone[Q] && owner[0] == 0 && owner[1] == 0 -> break
	:: else ->
		/* the recorder reports ended processes, after it has noticed them */
		if
		:: atomic { EXITED(P) && !gone[P] -> tell(P) }
		:: atomic { EXITED(Q) && !gone[Q] -> tell(Q) }
		:: true
		fi;
		/* threads_look */
		look(0);
		look(1);
#ifdef REAP
		reap(0);
		reap(1);
#endif
		/* drain: all written events, now or at another pass */
		drain(0);
		drain(1);
		/* threads_recycle; chunks of an ended thread that are not drained keep its entry */
		recycle(0);
		recycle(1)
	od;
	assert(drained == written);
	assert(written + lost[P] + lost[Q] >= P_LIVES + 1 && (killed_q || written + lost[P] + lost[Q] == P_LIVES + 1 + Q_LIVES))
}

init {
	atomic { run thread_p(); run handler_p(); run thread_q() }
}
