/* SPDX-License-Identifier: MIT */
/* sites.pml - model of the journal of call sites: processes announce, the collector hands over; kills and stragglers. */
/*
 * Two processes announce sites in a journal of two entries. Process A may be killed anywhere. Process B may be stopped for so
 * long that the collector gives its entry up (SITE_STUCK_NS) and other processes use the entry before B goes on. An entry has
 * three words; each word carries its lap of the journal.
 *
 * Checked: each entry handed over has three words of the same process, and each site is handed over at most once; in the end
 * each site was handed over, or counted as lost, or belonged to the killed process.
 *
 *     spin -a sites.pml && cc -O2 -DCOLLAPSE -DSAFETY -o pan pan.c && ./pan -m200000
 *
 * With -DNO_LAPS, given to spin, entries carry no laps: a straggler then spoils the entry of another process.
 */
#ifndef SITES
#define SITES 3 /* of A; B has two */
#endif
#define JOURNAL 2
#define NOBODY 0
#define A 1
#define B 2

/* A word: lap << 4 | site; sites of B are 8 and more. */
#ifdef NO_LAPS
#define WORD(at, site) (site)
#define IS_OF(word, at) (word != 0)
#define ZERO 0
#else
#define WORD(at, site) ((1 + (at) / JOURNAL) << 4 | site)
#define IS_OF(word, at) ((word) >> 4 == 1 + (at) / JOURNAL)
#endif
#define SITE(word) ((word) & 15)

byte address[JOURNAL];
byte id[JOURNAL];
byte process[JOURNAL];
byte head;
byte tail;

bool killed_a;
bool over[3];
byte lost;       /* site_lost: writers found the journal full, or an entry was given up */
byte given_up;   /* entries that no process wrote in time, or that a straggler spoiled */
byte handed[16]; /* number of times that each site was handed over */

inline announce(site)
{
	do
	:: true ->
		seen = head;
		if
		:: seen - tail >= JOURNAL -> lost++; break
		:: else
		fi;
		atomic {
			won = (head == seen);
			if
			:: won -> head++
			:: else
			fi
		}
		if
		:: won ->
			process[seen % JOURNAL] = WORD(seen, site);
			id[seen % JOURNAL] = WORD(seen, site);
			address[seen % JOURNAL] = WORD(seen, site);
			break
		:: else
		fi
	od
}

proctype writer_a()
{
	byte seen, k;
	bool won;

	{
		for (k : 1 .. SITES) {
			announce(k)
		}
		over[A] = true
	} unless { killed_a }
}

proctype writer_b()
{
	byte seen, k;
	bool won;

	for (k : 8 .. 9) {
		announce(k)
	}
	over[B] = true
}

active proctype killer()
{
	killed_a = true
}

#define READY(at) (IS_OF(address[at % JOURNAL], at) && IS_OF(id[at % JOURNAL], at) && IS_OF(process[at % JOURNAL], at))
#define ALL_OVER (over[B] && (over[A] || killed_a))

active proctype collector()
{
	byte word;

	do
	:: tail != head ->
		/* ready, or stuck for two seconds */
		atomic {
			word = address[tail % JOURNAL];
			if
			:: READY(tail) ->
				assert(SITE(word) == SITE(id[tail % JOURNAL]) && SITE(word) == SITE(process[tail % JOURNAL]));
				handed[SITE(word)]++;
				assert(handed[SITE(word)] == 1)
			:: !READY(tail) -> given_up++
			fi;
			word = 0
		}
#ifdef NO_LAPS
		address[tail % JOURNAL] = 0;
#endif
		tail++
	:: atomic { tail == head && ALL_OVER -> break }
	od;
	assert(lost + given_up + handed[1] + handed[2] + handed[3] + handed[8] + handed[9] >= 2);
	assert(killed_a || lost + given_up + handed[1] + handed[2] + handed[3] + handed[8] + handed[9] == SITES + 2)
}

init {
	atomic { run writer_a(); run writer_b() }
}
