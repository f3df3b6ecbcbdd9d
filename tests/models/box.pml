/* SPDX-License-Identifier: MIT */
/*
 * box.pml - a reader copies the black box of a process whose threads go on: struct ptt_black_box in ptt_abi.h.
 *
 * A thread fills its chunks in turn. To reuse a chunk it claims the chunk, clears its slots in any order, writes the serial and
 * makes the chunk its own. A slot is written once: the second word, then the first word. The reader reads the states, then the
 * chunk; then the chunk again, then the states. It uses a slot if the first word was there at the first look, and if the state
 * and the serial are the same at both looks. The words of a slot come from the second look.
 *
 * Each slot of each life of a chunk has words of its own, so a mixture of two events shows.
 *
 *     spin -a box.pml && cc -O2 -DCOLLAPSE -DSAFETY -o pan pan.c && ./pan -m200000
 *
 * With -DONE_LOOK, given to spin, the reader looks once. It takes a second word that is not written yet, because words may be
 * read in any order. With -DEARLY, the second look reads the states before the chunk, and takes words that are cleared already.
 */
#ifndef LIVES
#define LIVES 3
#endif
#define SLOTS 2
#define CHUNKS 2

#define FREE 0
#define CLAIMED 1
#define OWNED 2
#define FULL 3

byte status[CHUNKS]; /* with change[]: the state, one word */
byte change[CHUNKS];
byte serial[CHUNKS];
byte first[CHUNKS * SLOTS], second[CHUNKS * SLOTS]; /* 0: not written; life * SLOTS + slot + 1 */
bool over;

/* The words of a slot in the n-th life of a chunk of the thread. */
#define WORD(life, slot) ((life) * SLOTS + (slot) + 1)

active proctype thread()
{
	byte life, c, n;

	for (life : 1 .. LIVES) {
		c = life % CHUNKS;
		/* claim, by compare and swap; the fence behind it lets nothing overtake it */
		atomic { assert(status[c] == FREE || status[c] == FULL); status[c] = CLAIMED; change[c] = 0 }
		/* memset, in any order */
		n = 0;
		if
		:: first[c * SLOTS] = 0; second[c * SLOTS] = 0; first[c * SLOTS + 1] = 0; second[c * SLOTS + 1] = 0
		:: second[c * SLOTS + 1] = 0; first[c * SLOTS + 1] = 0; second[c * SLOTS] = 0; first[c * SLOTS] = 0
		fi
		serial[c] = life;
		atomic { status[c] = OWNED; change[c] = life }
		for (n : 0 .. SLOTS - 1) {
			second[c * SLOTS + n] = WORD(life, n);
			first[c * SLOTS + n] = WORD(life, n)
		}
		atomic { status[c] = FULL }
	}
	over = true
}

active proctype reader()
{
	byte c, n, w1, w2, seen_change, seen_status, now_change, now_status, seen_serial, now_serial;
	byte was[SLOTS], one[SLOTS], two[SLOTS];

	c = 0;
again:
	/* the first look: state, then chunk */
	atomic { seen_status = status[c]; seen_change = change[c] }
	if
	:: seen_status < OWNED -> goto next
	:: else
	fi;
	seen_serial = serial[c];
	for (n : 0 .. SLOTS - 1) {
#ifdef ONE_LOOK
		two[n] = second[c * SLOTS + n];
		was[n] = first[c * SLOTS + n];
		one[n] = was[n]
#else
		was[n] = first[c * SLOTS + n]
#endif
	}
#ifdef EARLY
	atomic { now_status = status[c]; now_change = change[c] }
#endif
	now_serial = serial[c];
#ifndef ONE_LOOK
	/* the words of a slot, in any order */
	for (n : 0 .. SLOTS - 1) {
		if
		:: one[n] = first[c * SLOTS + n]; two[n] = second[c * SLOTS + n]
		:: two[n] = second[c * SLOTS + n]; one[n] = first[c * SLOTS + n]
		fi
	}
#endif
#ifndef EARLY
	atomic { now_status = status[c]; now_change = change[c] }
#endif
	if
	:: seen_change != now_change || now_status < seen_status || seen_serial != now_serial -> goto next
	:: else
	fi;
	for (n : 0 .. SLOTS - 1) {
		if
		:: was[n] == 0 -> skip
		:: else ->
			assert(one[n] == was[n]);
			assert(two[n] == one[n]);
			assert(one[n] == WORD(seen_serial, n))
		fi
	}
next:
	c = 1 - c;
	if
	:: !over -> goto again
	:: true -> skip
	fi
}
