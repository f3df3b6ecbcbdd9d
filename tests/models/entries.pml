/* SPDX-License-Identifier: MIT */
/*
 * entries.pml - thread entries of a black box: threads.c. Nobody gives entries back, so threads take entries over.
 *
 * A thread takes a fresh entry: it raises the number of entries, then stores itself as the owner. Or it takes the entry of a
 * thread that has ended, by compare and swap of the owner. Each thread chooses which of the two it tries first.
 *
 * Checked: no entry has two owners, and the count of ended threads is never below zero, and right in the end.
 *
 *     spin -a entries.pml && cc -O2 -DCOLLAPSE -DSAFETY -o pan pan.c && ./pan -m200000
 *
 * With -DBLIND, given to spin, a thread also takes an entry without an owner in which no thread has ended. It takes an entry
 * that another thread is about to own.
 */
#define ENTRIES 2
#define THREADS 3
#define NONE 7

#define LIVE 1
#define ENDED 2

byte high;            /* segment.thread_high */
byte owner[ENTRIES];  /* thread_owner */
byte state[ENTRIES];  /* thread.state */
byte inside[ENTRIES]; /* threads that take this entry for their own */
byte ended;           /* segment.ended */
byte over;

inline claim_fresh()
{
	atomic {
		if
		:: high < ENTRIES -> mine = high; high++
		:: else
		fi
	}
	if
	:: mine != NONE -> owner[mine] = 1
	:: else
	fi
}

inline claim_ended()
{
	seen = high;
	n = 0;
	do
	:: n == seen || mine != NONE -> break
	:: else ->
		if
		:: owner[n] == 0 ->
#ifndef BLIND
			if
			:: state[n] == ENDED ->
#endif
				atomic {
					if
					:: owner[n] == 0 -> owner[n] = 1; mine = n
					:: else
					fi
				}
#ifndef BLIND
			:: else
			fi
#endif
		:: else
		fi;
		n++
	od;
	if
	:: mine != NONE -> atomic { assert(ended > 0); ended-- }
	:: else
	fi
}

active [THREADS] proctype thread()
{
	byte mine = NONE, seen, n;

	if
	:: claim_fresh(); if :: mine == NONE -> claim_ended() :: else fi
	:: claim_ended(); if :: mine == NONE -> claim_fresh() :: else fi
	fi;
	if
	:: mine != NONE ->
		atomic { inside[mine]++; assert(inside[mine] == 1) }
		state[mine] = LIVE;
		/* leave_box() */
		inside[mine]--;
		state[mine] = ENDED;
		ended++;
		owner[mine] = 0
	:: else
	fi;
	over++
}

active proctype judge()
{
	over == THREADS;
	assert(ended == high && owner[0] == 0 && owner[1] == 0)
}
