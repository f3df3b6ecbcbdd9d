/* SPDX-License-Identifier: MIT */
/* shared.pml - model of the handler `shared`: one buffer, its writers, a signal handler, a killed writer, a dead reader. */
/*
 * Two processes write. A signal handler that traces may interrupt A's thread anywhere; B's process may be killed anywhere. The
 * reader works in rounds and may be killed anywhere. Then writers count lost records, until another reader takes over from the
 * last packet on disk. Every record is one word long. Memory is sequentially consistent: the memory orders in shared.c and
 * drain_shared.c give this for all accesses that need it. The wait for room is a condition here; space.pml models how writers
 * are woken.
 *
 * Checked: every record is on disk at most once and in the order of time; a record that is not on disk was counted as lost or
 * as a fault, or belongs to a killed writer; no process waits for ever.
 *
 *     spin -a shared.pml && cc -O2 -DCOLLAPSE -DSAFETY -o pan pan.c && ./pan -m200000
 *
 * With -DFORKED, given to spin, B is the child of a signal handler's fork. It completes the parent's unfinished record in
 * private memory, which no other process sees. Until then its thread has the parent's mark. So a handler that interrupts it
 * there does not wait for the end of a pause, nor for room.
 *
 * By hand, given to spin: -DSTALLS (a handler between the count of writers and the mark of its thread waits for a reader that
 * takes that thread for a writer: the reader's limit of two seconds ends the wait), -DA_EVENTS=2, -DSLOW (a live writer may
 * also be given up after two seconds, and write later: the time of a spoilt record reveals this), -DREADERS=1 (no reader dies),
 * -DUNHURT (no writer is killed).
 */
#ifndef A_EVENTS
#define A_EVENTS 1
#endif
#ifndef B_EVENTS
#define B_EVENTS 1
#endif
#ifndef READERS
#define READERS 2
#endif
#define SIZE 4
#define HEADROOM 1
#define EVENTS (A_EVENTS + B_EVENTS + 1)
#define UNFINISHED 100
#define A 0
#define B 1
#define NOTHING 255

byte reserved;
byte written;
byte beg_read;
byte given_up;
bool pause;
byte cell[SIZE];      /* 0 = zeroed, UNFINISHED, or time + 1 */
byte owner_of[16];    /* owner of each reservation: 1 + process; for the model only */
byte writing[2];      /* process.writing */
byte clock = 1;

/* thread-local, of A's thread; its signal handler sees them */
bool tl_writing;
byte tl_at;

bool in_handler;
bool killed_b;
byte finished;
bool b_over;
bool reader_alive = true;
bool reader_gone;
byte waiters;

byte on_disk;         /* chunk_serial of the last packet */
byte last_time;       /* time_end of the last packet */
byte drained;
byte lost;
byte faults;          /* places given up without a good record */
bool took[16];        /* by time: it is on disk */

/* May B's thread reserve? A fork leaves a mark: the thread interrupts a writer, and no reader waits for it. */
#ifdef FORKED
#define B_WAITS false
#define B_MAY_NOT(at) (!HAS_ROOM(at, true))
#else
#define B_WAITS true
#define B_MAY_NOT(at) (!HAS_ROOM(at, false) || pause)
#endif

#define HAS_ROOM(at, nested) (at - beg_read + 1 + (nested -> 0 : HEADROOM) <= SIZE)
#define IS_NESTED (tl_writing && tl_at >= given_up)

inline reserve(who, at, time, won)
{
	time = clock; /* the clock only matters where it is used, so it moves then */
	atomic {
		won = (reserved == at);
		if
		:: won -> owner_of[reserved] = 1 + who; reserved++; clock++
		:: else
		fi
	}
}

inline write_and_commit(at, time, word)
{
	cell[at % SIZE] = UNFINISHED;
	cell[at % SIZE] = time + 1;
	do
	:: true ->
		word = written;
		if
		:: at < given_up -> break
		:: else
		fi;
		atomic {
			if
			:: written == word -> written++; break
			:: else
			fi
		}
	od
}

/* put() of A: its handler is nested if it interrupts the thread between the reservation and the write. */
inline put_a()
{
	do
	:: true ->
		atomic { outer = tl_writing; outer_at = tl_at; nested = IS_NESTED };
#ifdef STALLS
		writing[A]++;
#else
		at = reserved;
		if
		:: !nested -> tl_at = at
		:: else
		fi;
		tl_writing = true;
		writing[A]++;
#endif
		do
		:: true ->
			at = reserved;
			if
			:: !nested -> tl_at = at
			:: else
			fi;
			tl_writing = true;
			outcome = 1; /* no room */
			if
			:: !HAS_ROOM(at, nested) -> break
			:: else
			fi;
			outcome = 2; /* paused */
			if
			:: !nested && pause -> break
			:: else
			fi;
			reserve(A, at, time, won);
			outcome = 0;
			if
			:: won -> write_and_commit(at, time, word); break
			:: else
			fi
		od;
#ifdef STALLS
		tl_at = outer_at;
		tl_writing = outer;
		writing[A]--;
#else
		writing[A]--;
		tl_at = outer_at;
		tl_writing = outer;
#endif
		if
		:: outcome == 0 -> break
		:: outcome == 2 ->
			(!pause || !reader_alive);
			if
			:: !reader_alive -> lost++; break
			:: else
			fi
		:: outcome == 1 ->
			if
			:: IS_NESTED -> lost++; break
			:: else
			fi;
			if
			:: !reader_alive -> lost++; break
			:: else
			fi;
			waiters++;
			(HAS_ROOM(reserved, false) || !reader_alive);
			waiters--
		fi
	od;
	atomic { outcome = 0; at = 0; time = 0; word = 0; outer = false; outer_at = 0; nested = false; won = false }
}

proctype thread_a() provided (!in_handler)
{
	byte at, time, word, outer_at, outcome, n;
	bool outer, nested, won;

	for (n : 1 .. A_EVENTS) {
		put_a()
	}
	finished++
}

proctype handler_a()
{
	byte at, time, word, outer_at, outcome;
	bool outer, nested, won;

	in_handler = true;
	put_a();
	atomic { in_handler = false; finished++ }
}

proctype thread_b()
{
	byte at, time, word, n;
	bool won;

	{
#ifdef STRAY
		written++; /* a bug: both the child and its parent commit the parent's reservation */
#endif
		for (n : 1 .. B_EVENTS) {
			do
			:: true ->
				writing[B]++;
				do
				:: true ->
					at = reserved;
					won = false;
					if
					:: B_MAY_NOT(at) -> break
					:: else
					fi;
					reserve(B, at, time, won);
					if
					:: won -> write_and_commit(at, time, word); break
					:: else
					fi
				od;
				writing[B]--;
				if
				:: won -> break
				:: else ->
					if
					:: !reader_alive || !B_WAITS -> lost++; break
					:: else
					fi;
					waiters++;
					(!pause && HAS_ROOM(reserved, false) || !reader_alive);
					waiters--
				fi
			od
		}
		atomic { finished++; b_over = true }
	} unless { killed_b }
	atomic {
		if
		:: !b_over -> finished++; b_over = true
		:: else
		fi
	}
}

#ifndef UNHURT
active proctype killer()
{
	killed_b = true
}
#endif

#define MAY_BE_MISSING (writing[A] == 0 && (writing[B] == 0 || killed_b))

/* One record at `at`, which is below end_read. A packet holds one record; `spoilt` counts bad records. */
inline take()
{
	value = cell[at % SIZE];
	if
	:: value != 0 && value != UNFINISHED && value > last_time ->
		atomic { /* the packet is whole on disk, or not there */
			assert(!took[value]);
			took[value] = true; last_time = value; drained++; on_disk = at + 1
		}
		cell[at % SIZE] = 0;
		beg_read = at + 1
	:: else ->
#ifndef SLOW
		/* only a killed writer leaves such a record */
		assert(owner_of[at] == 1 + B && killed_b);
#endif
		cell[at % SIZE] = 0;
		atomic { faults++; beg_read = at + 1 }
	fi;
	value = 0
}

proctype reader()
{
	byte w, r, before, end_read, value, at;

	{
		/* shared_take_up() */
		if
		:: on_disk > beg_read -> cell[beg_read % SIZE] = 0; beg_read = on_disk
		:: else
		fi;
		pause = false;
		do
		:: finished == 3 && reserved == beg_read -> break
		:: reserved - beg_read >= SIZE / 2 || waiters > 0 && reserved != beg_read || finished == 3 && reserved != beg_read ->
			pause = true;
			do
			:: true ->
				w = written;
				r = reserved;
				if
				:: w == r -> break
				:: else
				fi;
				if
#ifdef SLOW
				:: true ->
#else
				:: MAY_BE_MISSING ->
#endif
					before = r;
					w = written;
					r = reserved;
					if
					:: w == r -> break
					:: r == before && w != r ->
						given_up = r;
						atomic {
							if
							:: written == w -> written = r; w = r
							:: else
							fi
						}
						if
						:: w == r -> break
						:: else
						fi
					:: else
					fi
				:: written != w || reserved != r
				fi
			od;
			end_read = r;
			pause = false;
			do
			:: beg_read != end_read -> at = beg_read; take()
			:: else -> break
			od;
			atomic { w = 0; r = 0; before = 0; end_read = 0; at = 0 }
		od
	} unless { !reader_alive };
	reader_gone = true
}

init {
	atomic { run thread_a(); run handler_a(); run thread_b(); run reader() }
#if READERS == 2
	if
	:: reader_alive = false; reader_gone; atomic { reader_alive = true; run reader() }
	:: true
	fi;
#endif
	(finished == 3 && reserved == beg_read);
#ifndef SLOW
	assert(written == reserved);
#endif
	assert(drained + faults == reserved);
	assert(killed_b || drained + lost + faults == EVENTS)
}
