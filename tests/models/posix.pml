/* SPDX-License-Identifier: MIT */
/* posix.pml - model of a stream of <trace.h>: writers, a writer's death, the reader or flush agent, the controller's end. */
/*
 * The model follows cells.h, ring_put.c and ring_take.c in native/posix/ring. Each access to shared memory is a step: head,
 * tail, a mark for each cell, records of one cell (first writer) and of two cells (second writer), the slow paths of the three
 * policies, and the bell. Places are never reused, so they stand for time as well: a place that was reserved earlier is older.
 *
 * The first writer can be killed between any two steps (-DDEATH). The reader then gives the unfinished record up. The real
 * reader learns of the death from the kernel and after ten seconds; here, the reader knows it. With FLUSH the reader is the
 * agent in the controller, and can itself be killed (-DORPHAN). With -DSTOPS the controller stops the stream at some moment.
 *
 * Checked: an event is delivered once, whole, after the earlier events of its writer, and never after it was given up; an
 * event that is not delivered was overwritten, counted as lost, or belongs to a killed writer; a gap is reported only where
 * there is a gap, and always then, with the time of its first event; UNTIL_FULL loses no event between START and STOP, and
 * delivers both in that order; no event is recorded after a stop; no process sleeps while it has work.
 *
 *     spin -DLOOP -a posix.pml && cc -O2 -DCOLLAPSE -DSAFETY -o pan pan.c && ./pan -m200000
 *
 * -DFLUSH and -DUNTIL_FULL are the other policies. Each with -DDEATH, -DSTOPS or -DB_EVENTS=2 takes longer.
 */
#ifndef A_EVENTS
#define A_EVENTS 2
#endif
#ifndef B_EVENTS
#define B_EVENTS 1
#endif
#define LIMIT 2		/* cells for events; the other cells of the ring are for events that describe the stream */
#ifdef LOOP
#define CELLS 3
#else
#define CELLS 4
#endif
#define PLACES 20
#define NOBODY 7

/* Where records begin, so that no place is 0. */
#define FIRST 1

#define RESERVED 1
#define COMMITTED 2
#define VOID 3

/* Events: writer * 4 + number, and the stream's own events. */
#define START 12
#define STOP 13
#define OVERFLOW 14
#define RESUME 15
#define NONE 31
#define IS_USERS(e) (e < 12)

/* Shared memory. */
byte head_place = FIRST;
byte head_cells;
bool is_full, due, stopped;
byte tail = FIRST;
bool gap;
byte mark_place[CELLS], mark_cells[CELLS], mark_state[CELLS];
byte first[CELLS] = NONE;	/* of a record: the first half, in its first cell, */
byte last[CELLS] = NONE;	/* and the second half, in its last cell */
byte said[CELLS];		/* the place that the writer has stored with its name */
byte said_by[CELLS] = NOBODY;
byte victim[PLACES];		/* by place: the time stored there; 0 = none */
byte lost;
bool alive = true;		/* the controller */
bool closed;
bool waits, bell;

/* State of the model alone. */
bool dead[4];
byte finished;
byte reserved_by[PLACES] = NOBODY;
byte delivered[16];
byte overwritten;		/* records of programs, */
byte overwritten_first;		/* the place of the first since the last visit of the reader */
byte recorded;			/* events of programs that were committed, */
byte given_up;			/* and records that were not */
byte stop_place;
bool void_in_gap;

#define AT(place) ((place) % CELLS)
#define IS_OF(p) (mark_place[AT(p)] == p && mark_state[AT(p)] != 0)
#define IS_OLD(p) (mark_state[AT(p)] == 0 || mark_place[AT(p)] < p)

/* help(): the mark of the last reservation; only head has the length of it */
inline help(hp, hc)
{
	skip;
#ifndef HELPLESS
	if
	:: hc != 0 ->
		atomic { /* a load, and a swap that fails if the mark has changed */
			if
			:: IS_OLD(hp - hc) ->
				mark_place[AT(hp - hc)] = hp - hc;
				mark_cells[AT(hp - hc)] = hc;
				mark_state[AT(hp - hc)] = RESERVED
			:: else
			fi
		}
	:: else
	fi
#endif
}

/* give_up(): also for a living writer that is mistaken for a dead writer */
inline give_up(p)
{
	if
	:: IS_OF(p) && mark_state[AT(p)] == RESERVED -> mark_state[AT(p)] = VOID; lost++; given_up++; good = true
	:: else -> good = false
	fi
}

#ifdef HASTY
#define HOPELESS(p) true
#else
#define HOPELESS(p) (reserved_by[p] != NOBODY && dead[reserved_by[p]])
#endif

/* commit(): `good` is false if the reader has given the record up; the look and the store are two steps */
inline commit(p, c)
{
	good = (IS_OLD(p) || (mark_place[AT(p)] == p && mark_state[AT(p)] == RESERVED));
	if
	:: good ->
		atomic {
			mark_place[AT(p)] = p; mark_cells[AT(p)] = c; mark_state[AT(p)] = COMMITTED;
			if
			:: IS_USERS(first[AT(p)]) -> recorded++
			:: else
			fi
		}
	:: else
	fi
}

inline write(p, c, what)
{
	atomic { said[AT(p)] = p; said_by[AT(p)] = me }
	first[AT(p)] = what;
	last[AT(p + c - 1)] = what
}

inline wake()
{
	if
	:: waits -> atomic { waits = false; bell = !bell }
	:: else
	fi
}

/* The store of the mark may come after the look at the waiters; the move of head may not. */
inline finish(p, c)
{
#ifdef SILENT
	early = false;
#else
	early = waits;
#endif
	commit(p, c);
	if
	:: early -> atomic { waits = false; bell = !bell; early = false }
	:: else
	fi
}

/* move head if it has not changed; `won` is true then */
inline move_head(n, f, d, s)
{
	atomic {
		won = (head_place == hp && head_cells == hc && is_full == hf && due == hd && stopped == hs);
		if
		:: won ->
			head_place = hp + n; head_cells = n; is_full = f; due = d; stopped = s;
			reserved_by[hp] = me;
			assert(hp + n - tail <= CELLS)
		:: else
		fi
	}
}

inline read_head()
{
	atomic { hp = head_place; hc = head_cells; hf = is_full; hd = due; hs = stopped }
}

inline count_overwritten(p)
{
	if
	:: IS_USERS(first[AT(p)]) && mark_state[AT(p)] == COMMITTED -> overwritten++
	:: mark_state[AT(p)] == VOID && !gap -> void_in_gap = true
	:: else
	fi
}

/* recycle(): again is false if the oldest record is being written */
inline recycle()
{
	again = true;
	atomic { t = tail; g = gap }
	if
	:: !IS_OF(t) || mark_state[AT(t)] == RESERVED ->
		if
		:: tail != t
		:: else ->
			if
			:: said[AT(t)] == t && said_by[AT(t)] != NOBODY && dead[said_by[AT(t)]] -> atomic { give_up(t) }
			:: else -> again = false
			fi
		fi
	:: else ->
		c = mark_cells[AT(t)];
		if /* up to two at a time */
		:: IS_OF(t + c) && mark_state[AT(t + c)] != RESERVED -> d = mark_cells[AT(t + c)]
		:: else -> d = 0
		fi;
		if
		:: !g && tail == t -> victim[t] = t
		:: else
		fi;
		atomic {
			if
			:: tail == t && gap == g ->
				count_overwritten(t);
				if
				:: d != 0 -> count_overwritten(t + c)
				:: else
				fi;
				if
				:: !gap -> overwritten_first = t
				:: else
				fi;
				tail = t + c + d;
#ifndef MUTE
				gap = true
#endif
			:: else
			fi
		}
	fi
}

/* become_full(): an event that reports it, in the cell that is reserved for this event */
inline become_full(what)
{
	if
	:: hp + 1 - tail > CELLS ->
		atomic {
			if
			:: head_place == hp && is_full == hf && due == hd && stopped == hs -> is_full = true
			:: else
			fi
		}
	:: else ->
		help(hp, hc);
		move_head(1, true, hd, hs);
		if
		:: won -> write(hp, 1, what); finish(hp, 1)
		:: else
		fi
	fi
}

/* put_two(): an event that reports that recording resumes, and then the event itself */
inline put_two(what)
{
	help(hp, hc);
	move_head(1 + cells, false, false, false);
	if
	:: won ->
		write(hp + 1, cells, event);
		write(hp, 1, what);
		commit(hp + 1, cells);
		finish(hp, 1);	/* until now, the place had one mark for both */
		break
	:: else
	fi
}

/* Variables that are no longer used must not make states differ. */
inline forget()
{
	hp = 0; hc = 0; hf = false; hd = false; hs = false; t = 0; g = false; c = 0; d = 0; won = false; good = false; again = false
}

/* px_put() */
inline put()
{
	do
	:: true ->
		atomic { forget(); read_head() }
		if
		:: hs -> break
		:: else
		fi;
		t = tail;
		if
		:: !hf && !hd && hp + cells - t <= LIMIT ->
			help(hp, hc);
			move_head(cells, false, false, false);
			if
			:: won ->
#ifdef EAGER
				finish(hp, cells);
				write(hp, cells, event);
#else
				write(hp, cells, event);
				finish(hp, cells);
#endif
				break
			:: else
			fi
		:: hd && hp + cells - t <= LIMIT && !hf -> put_two(START)
		:: hf ->
#ifdef FLUSH
			if
			:: hp + cells + 1 - tail <= LIMIT -> put_two(RESUME)
			:: else -> lost++; wake(); break
			fi
#else
			lost++; wake(); break
#endif
		:: else ->
#ifdef LOOP
			recycle();
			if
			:: !again -> lost++; break
			:: else
			fi
#endif
#ifdef FLUSH
			/* it waits for room, for the controller's end, or for the end of its patience */
			wake();
			if
			:: hp + cells - tail <= LIMIT || is_full || stopped || head_place != hp || tail != t
			:: !alive -> lost++; break
			:: become_full(OVERFLOW)
			fi
#endif
#ifdef UNTIL_FULL
			become_full(STOP)
#endif
		fi
	od
}

proctype writer(byte me)
{
	byte hp, hc, t, c, d, event, cells = me + 1, n;
	bool hf, hd, hs, g, won, good, again, early;

	{
		do
		:: n < (me -> B_EVENTS : A_EVENTS) ->
			event = me * 4 + n;
			put();
			atomic { forget(); event = 0; n++ }
		:: else -> break
		od
	} unless {
		dead[me]
	};
	atomic { forget(); event = 0; n = 0; finished++ }
}

#ifdef DEATH
active proctype killer()
{
	if
	:: dead[0] = true
	:: finished > 0 /* too late, perhaps */
	fi
}
#endif
#ifdef STOPS
#define ENDED (finished == 3)
#else
#define ENDED (finished == 2)
#endif

#ifdef STOPS
/* posix_trace_stop(): an event and a flag, in one step of head */
active proctype controller()
{
	byte hp, hc, me = 2;
	bool hf, hd, hs, won, good, early;

	do
	:: true ->
		read_head();
		if
		:: hp + 1 - tail > CELLS || hf ->
			move_head(0, hf, hd, true)
			/* the real code keeps head_cells; it helps no writer after that */
		:: else ->
			help(hp, hc);
			move_head(1, hf, hd, true);
			if
			:: won -> stop_place = hp; write(hp, 1, STOP); finish(hp, 1)
			:: else
			fi
		fi;
		if
		:: won -> break
		:: else
		fi
	od;
	finished++
}
#endif

/* px_take(): `got` is the event taken, NONE, or unset */
inline take()
{
	atomic { got = NONE; unfinished = false }
	do
	:: true ->
		atomic {
			mp = 0; mc = 0; ms = 0; one = 0; other = 0; seen = false; won = false; good = false;
			t = tail; g = gap
		}
		read_head();
		if
		:: t == hp ->
#ifdef UNTIL_FULL
			if
			:: hf && !hs ->
				atomic {
					if
					:: head_place == hp && head_cells == hc && is_full == hf && due == hd && stopped == hs ->
						is_full = false; due = true
					:: else
					fi
				}
			:: else
			fi;
#endif
			break
		:: else
		fi;
		atomic { mp = mark_place[AT(t)]; mc = mark_cells[AT(t)]; ms = mark_state[AT(t)] }
		if
		:: mp != t || ms == 0 || ms == RESERVED ->
			if
			:: tail != t
			:: else ->
				help(hp, hc);
				if
				:: HOPELESS(t) ->
					atomic { give_up(t) }
					if
					:: !good && tail == t && !IS_OF(t) -> unfinished = true; break
					:: else
					fi
				:: else -> unfinished = true; break
				fi
			fi
		:: ms == VOID && mp == t ->
			atomic {
				if
				:: tail == t && gap == g ->
					tail = t + mc;
					if
					:: !g -> expected = t + mc
					:: else
					fi
				:: else
				fi
			}
		:: else ->
			one = first[AT(t)];
			other = last[AT(t + mc - 1)];
			seen = (g && victim[expected] == expected);
			atomic {
#ifdef UNSURE
				won = true;
				if
				:: tail == t -> tail = t + mc; gap = false
				:: else
				fi;
#else
				won = (tail == t && gap == g);
				if
				:: won -> tail = t + mc; gap = false
				:: else
				fi;
#endif
				if
				:: won ->
					got = one;
					assert(one == other);
					/* a gap is reported exactly if there is a gap, with its true beginning */
					assert(g == (expected != t));
					assert(!g || seen || void_in_gap);
					assert(!g || overwritten_first == expected || void_in_gap);
					expected = t + mc;
					void_in_gap = false;
					place = t
				:: else
				fi
			}
			if
			:: won -> break
			:: else
			fi
		fi
	od
}

active proctype reader()
{
	byte hp, hc, t, mp, mc, ms, one, other, got, place, expected = FIRST;
	byte next[2];
	bool hf, hd, hs, g, won, good, unfinished, seen, heard;
	bool was_stopped, over, ended;
	byte me = 3;

	do
	:: true ->
		atomic { heard = bell; ended = ENDED }
		waits = true;
		take();
		if
		:: got != NONE && IS_USERS(got) ->
			atomic {
				delivered[got]++;
				assert(delivered[got] == 1);
				assert(got % 4 >= next[got / 4]);
				next[got / 4] = got % 4 + 1;
				assert(!was_stopped || dead[0]); /* START may have died with its writer */
				assert(stop_place == 0 || place < stop_place)
			}
		:: got == START -> assert(was_stopped); was_stopped = false
		:: got == STOP && stop_place == 0 -> assert(!was_stopped); was_stopped = true
		:: got != NONE && !IS_USERS(got) && got != START && !(got == STOP && stop_place == 0)
		:: got == NONE && unfinished -> assert(!ended) /* looks again after a millisecond */
		:: got == NONE && !unfinished ->
			if
			:: bell != heard
			:: ENDED ->
				/* no wake came: there was no event, or the writer that should have woken us was killed */
				assert(tail == head_place || bell != heard || dead[0] || !waits);
				if
				:: over -> break
				:: else -> over = true /* and once more, as at shutdown */
				fi
			fi
		fi
#ifdef ORPHAN
	:: true -> alive = false; break
#endif
	od;
#ifdef ORPHAN
	(ENDED); /* the writers get on without it */
#endif
	skip
}

init {
	atomic { run writer(0); run writer(1) }
	(ENDED);
	(_nr_pr == 1 || timeout);
	assert(alive -> recorded <= delivered[0] + delivered[1] + delivered[2] + delivered[4] + delivered[5] + delivered[6] +
			overwritten + given_up : true)
}
