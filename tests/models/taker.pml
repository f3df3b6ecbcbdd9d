/* SPDX-License-Identifier: MIT */
/* taker.pml - model of the table of last takers: does an acquisition leave out its fence only if this is safe? */
/*
 * Threads take and release two locks of one hash, so that both share an entry of the table. Each acquisition and each release
 * may be recorded or not, as levels change. The look at the entry and the store behind it are separate steps, and holders of
 * the other lock come between. The model leaves out shared acquisitions and threads without an entry: they leave the entry
 * unsure. A new object also leaves the entry unsure, or does not change it.
 *
 * Checked: a recorded acquisition is stamped behind a fence if another thread has recorded a release of the lock since this
 * thread last took the lock with its name in the entry.
 *
 *     spin -a taker.pml && cc -O2 -DCOLLAPSE -DSAFETY -o pan pan.c && ./pan -m200000
 *
 * With -DBLIND_RELEASE, given to spin, a release does not look at the table: acquisitions may have gone unrecorded.
 */
#ifndef ROUNDS
#define ROUNDS 2 /* of each thread */
#endif
#define THREADS 3
#define LOCKS 2
#define UNSURE 15
#define NAME(lock, thread) (1 + (lock) * THREADS + (thread))

byte entry;            /* 0 = no lock of this hash was ever taken */
byte holder[LOCKS];    /* 1 + thread; 0 = free */
bool released_by_other[LOCKS * THREADS]; /* a release that this thread's next stamp must not precede */

/* An acquisition, with the steps of ptt_taker_mark(). */
inline acquire(lock)
{
	atomic { holder[lock] == 0 -> holder[lock] = 1 + me }
	if
	:: skip -> /* recorded */
		known = (entry == NAME(lock, me));
		assert(!known || !released_by_other[lock * THREADS + me]);
		released_by_other[lock * THREADS + me] = false;
		if
		:: known
		:: else -> entry = NAME(lock, me)
		fi
	:: skip /* at a lower level, or behind a filter */
	fi
}

inline release(lock)
{
	if
	:: skip -> /* recorded */
#ifndef BLIND_RELEASE
		known = (entry == NAME(lock, me));
		if
		:: known
		:: else -> entry = UNSURE
		fi;
#endif
		atomic {
			for (k : 0 .. THREADS - 1) {
				if
				:: k != me -> released_by_other[lock * THREADS + k] = true
				:: else
				fi
			}
		}
	:: skip
	fi;
	holder[lock] = 0
}

proctype thread(byte me)
{
	byte k, n, which;
	bool known;

	for (n : 1 .. ROUNDS) {
		if
		:: which = 0
		:: which = 1
		fi;
		acquire(which);
		release(which)
	}
}

init {
	atomic { run thread(0); run thread(1); run thread(2) }
}
