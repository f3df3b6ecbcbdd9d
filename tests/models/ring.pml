/* SPDX-License-Identifier: MIT */
/* ring.pml - model of the ring protocol: one thread and its signal handler write, the collector drains and revokes. */
/*
 * Abstractions: memory is sequentially consistent (release and acquire give this for published slots, and membarrier gives it
 * for the revocation); chunks hold CAP slots; a handler may interrupt the thread anywhere, and runs to its end first, as signal
 * handlers do. Checked: every event is drained exactly once, in the order of time, and whole; no thread waits for ever; no
 * thread writes to a chunk of another owner.
 *
 *     spin -a ring.pml && cc -O2 -DCOLLAPSE -DSAFETY -o pan pan.c && ./pan -m200000
 *
 * Larger, by hand, given to spin: -DMAIN_EVENTS=2 -DSIGNAL_EVENTS=2 (and -m400000 to pan).
 */
#ifndef MAIN_EVENTS
#define MAIN_EVENTS 3
#endif
#ifndef SIGNAL_EVENTS
#define SIGNAL_EVENTS 1
#endif
#ifndef ASKS
#define ASKS 2
#endif
#define EVENTS (MAIN_EVENTS + SIGNAL_EVENTS)
#define CHUNKS 2
#define CAP 2
#define NONE 7

#define FREE 0
#define CLAIMED 1
#define OWNED 2
#define FULL 3
#define GONE 4 /* PTT_CHUNK_TAKEN: the collector has it */

#define ASKED 1
#define TAKEN 2

byte status[CHUNKS];
byte serial[CHUNKS];
byte changes[CHUNKS]; /* of the head that installed it; part of the state word */
byte slot[4];      /* CHUNKS * CAP; 0 = not written, else time + 1 */

byte head_chunk = NONE; /* head: chunk, position and changes are one word */
byte head_pos;
byte head_changes;
byte revoke_state;
byte revoke_changes;
byte serials;
byte clock;

bool in_handler;  /* the thread stands still */
byte done;        /* writers that have finished */
byte asks; /* number of requests of the collector; bounded, or the states would have no end */
byte drained_count;
byte last_time;   /* of the last event drained */

#define HEAD_IS(c, p, n) (head_chunk == c && head_pos == p && head_changes == n)

/* Claims the next free chunk for the caller; mine = NONE if no chunk is free. */
inline claim(mine)
{
	atomic {
		if
		:: status[0] == FREE -> status[0] = CLAIMED; mine = 0
		:: status[0] != FREE && status[1] == FREE -> status[1] = CLAIMED; mine = 1
		:: else -> mine = NONE
		fi
	}
}

inline refill(hc, hp, hn, mine, my_serial, won)
{
	claim(mine);
	if
	:: mine == NONE -> /* sleep until something has changed */
		(status[0] == FREE || status[1] == FREE || !HEAD_IS(hc, hp, hn))
	:: else ->
		atomic { my_serial = serials; serials++ }
		slot[mine * CAP] = 0;
		slot[mine * CAP + 1] = 0;
		serial[mine] = my_serial;
		atomic { changes[mine] = hn + 1; status[mine] = OWNED }
		atomic {
			won = HEAD_IS(hc, hp, hn);
			if
			:: won -> head_chunk = mine; head_pos = 0; head_changes++
			:: else
			fi
		}
		if
		:: won && hc != NONE ->
			atomic { /* close the old chunk: compare and swap of owner, changes, OWNED */
				if
				:: status[hc] == OWNED && changes[hc] == hn -> status[hc] = FULL
				:: else
				fi
			}
		:: won && hc == NONE
		:: !won -> status[mine] = FREE
		fi
	fi
}

/* kept = may the thread write the slot reserved at (hc, hn)? The word has changed since before the reservation. */
inline settle(hc, hn, kept, word, state, gone)
{
	do
	:: true ->
		atomic { state = revoke_state; word = revoke_changes }
		if
		:: state == 0 -> break
		:: state == ASKED ->
			atomic { /* compare and swap */
				if
				:: revoke_state == ASKED && revoke_changes == word -> revoke_state = 0
				:: else
				fi
			}
		:: state == TAKEN ->
			atomic { gone = (head_changes == word -> head_chunk : NONE) }
			if
			:: gone != NONE ->
				atomic {
					if
					:: status[gone] == OWNED && changes[gone] == word -> status[gone] = GONE
					:: else
					fi
				}
				atomic {
					if
					:: head_changes == word -> head_chunk = NONE; head_pos = 0; head_changes++
					:: else
					fi
				}
			:: else
			fi
			atomic {
				if
				:: revoke_state == TAKEN && revoke_changes == word ->
					revoke_state = 0; revoke_changes = word + 1
				:: else
				fi
			}
		fi
	od;
	kept = ((status[hc] == OWNED || status[hc] == FULL) && changes[hc] == hn)
}

inline put()
{
	ok = false;
	do
	:: ok -> break
	:: else ->
		seen = revoke_changes; /* the word without its state */
		atomic { hc = head_chunk; hp = head_pos; hn = head_changes }
		if
		:: hc == NONE || hp == CAP -> refill(hc, hp, hn, mine, my_serial, won)
		:: else ->
			time = clock; /* the clock only matters where it is used, so it moves then */
			atomic {
				won = HEAD_IS(hc, hp, hn);
				if
				:: won -> head_pos++; clock++
				:: else
				fi
			}
			if
			:: won ->
				kept = true;
				if
				:: revoke_state != 0 || revoke_changes != seen -> settle(hc, hn, kept, word, state, gone)
				:: else
				fi;
				if
				:: kept ->
					assert(status[hc] == OWNED || status[hc] == FULL);
					assert(slot[hc * CAP + hp] == 0);
					slot[hc * CAP + hp] = time + 1;
					ok = true
				:: else
				fi
			:: else
			fi
		fi
	od
}

proctype thread() provided (!in_handler)
{
	byte hc, hp, hn, mine, my_serial, time, word, state, seen, gone, n;
	bool won, kept, ok;

	for (n : 1 .. MAIN_EVENTS) {
		put()
	}
	done++
}

proctype handler()
{
	byte hc, hp, hn, mine, my_serial, time, word, state, seen, gone, n;
	bool won, kept, ok;

	for (n : 1 .. SIGNAL_EVENTS) {
		in_handler = true;
		put();
		in_handler = false
	}
	done++
}

byte drained[CHUNKS]; /* slots already taken out of the chunk, this time round */
byte drained_serial[CHUNKS];

/*
 * Drain the committed slots of a chunk, in order. A writer that loses the race to its own signal handler gives its chunk back,
 * and may claim it again while the collector reads the chunk. So the slots count only if the chunk's serial has not changed
 * during the read.
 */
inline drain(c, limit, seen, value)
{
	atomic {
		if
		:: drained_serial[c] != seen + 1 -> drained[c] = 0; drained_serial[c] = seen + 1
		:: else
		fi
	}
	do
	:: drained[c] < limit ->
		value = slot[c * CAP + drained[c]];
		if
		:: value == 0 -> break
		:: else
		fi;
		if
		:: status[c] < OWNED || serial[c] != seen -> break
		:: else
		fi;
		atomic {
			assert(value > last_time);
			last_time = value;
			drained[c]++;
			drained_count++
		}
	:: else -> break
	od
}

active proctype collector()
{
	byte c, hc, hp, hn, seen, value;
	bool took;

	do
	:: drained_count == EVENTS && done == 2 -> break
	:: else ->
		/* the older of the two chunks first, by chunk.serial; both serials are read together */
		atomic {
			c = NONE;
			if
			:: status[0] >= OWNED && (status[1] < OWNED || serial[0] < serial[1]) -> c = 0
			:: status[1] >= OWNED && (status[0] < OWNED || serial[1] < serial[0]) -> c = 1
			:: else
			fi;
			if
			:: c != NONE -> seen = serial[c]; took = (status[c] == FULL)
			:: else
			fi
		}
		if
		:: c != NONE ->
			drain(c, CAP, seen, value);
			if
			:: took && drained[c] == CAP -> drained[c] = 0; drained_serial[c] = 0; status[c] = FREE
			:: else
			fi
		:: else
		fi
		if
		:: true
		:: asks < ASKS && revoke_state == 0 && head_chunk != NONE -> /* ask for the chunk of the thread */
			atomic { asks++; hn = head_changes; revoke_changes = hn; revoke_state = ASKED }
			atomic { hc = head_chunk; hp = head_pos; took = (head_changes == hn) }
			if
			:: took && hp > 0 && slot[hc * CAP] == 0 -> took = false
			:: else
			fi
			if
			:: took && hp > 1 && slot[hc * CAP + 1] == 0 -> took = false
			:: else
			fi
			/* older chunks must be drained first, or events would be out of order */
			if
			:: took && (status[1 - hc] >= OWNED) -> took = false
			:: else
			fi
			atomic {
				if
				:: revoke_state == ASKED && revoke_changes == hn ->
					if
					:: took -> revoke_state = TAKEN
					:: else -> revoke_state = 0
					fi
				:: else -> took = false
				fi
			}
			if
			:: took ->
				atomic {
					if
					:: status[hc] == OWNED -> status[hc] = GONE
					:: status[hc] == FULL -> took = false /* the writer has moved on: a full chunk like others */
					:: else -> assert(status[hc] == GONE)
					fi
				}
				if
				:: took ->
					drain(hc, hp, serial[hc], value);
					assert(drained[hc] == hp);
					drained[hc] = 0; drained_serial[hc] = 0;
					status[hc] = FREE
				:: else
				fi
			:: else
			fi
		fi
	od;
	assert(drained_count == EVENTS)
}

init {
	atomic { run thread(); run handler() }
}
