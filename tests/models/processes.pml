/* SPDX-License-Identifier: MIT */
/* processes.pml - model of process entries: claimed, used by threads and call sites, given back, claimed by another image. */
/*
 * Three processes want a single entry, in turn or at once; each process may be killed anywhere. A process leaves a thread
 * entry, and an announcement in the journal of call sites, which the collector reads later. Both name the process by the index
 * of its entry.
 *
 * Checked: an entry has one owner; the collector reads only data of the image that has the entry at that moment; in the end the
 * entry is free, or its owner was killed before it announced anything.
 *
 *     spin -a processes.pml && cc -O2 -DCOLLAPSE -DSAFETY -o pan pan.c && ./pan -m200000
 *
 * With -DNO_SITES or -DNO_THREADS, given to spin, the collector does not wait for call sites, or not for threads.
 */
#define IMAGES 3
#define FREE 0
#define CLAIMED 1
#define LIVE 2

#ifdef NO_SITES
#define SITES_READ true
#else
#define SITES_READ (tail >= sites)
#endif
#ifdef NO_THREADS
#define THREADS_LEFT true
#else
#define THREADS_LEFT (!thread_of[image])
#endif

byte state;             /* of the entry */
byte image;             /* that has it */
byte journal[IMAGES];   /* images that announced, in order */
byte head, tail;
byte thread_of[1 + IMAGES]; /* image -> has a thread entry that is not given back */
bool told[1 + IMAGES];  /* LIVE was stored */
bool dead[1 + IMAGES];
byte over;

proctype process(byte me)
{
	{
		if
		:: atomic { state == FREE -> state = CLAIMED; assert(image == 0); image = me }
			told[me] = true;
			state = LIVE;
			thread_of[me] = 1;
			atomic { journal[head] = me; head++ }
		:: state != FREE -> skip /* too many processes: counted */
		fi
	} unless { dead[me] };
	atomic { dead[me] = true; over++ }
}

active proctype killer()
{
	byte victim;

	select(victim : 1 .. IMAGES);
	dead[victim] = true
}

active proctype collector()
{
	byte who, sites;
	bool gone;

	do
	:: !gone && state == LIVE && dead[image] -> /* the watch has seen the process end, and reports it */
		atomic { gone = true; sites = head }
	:: tail < head -> atomic { assert(journal[tail] == image); tail++ }
	:: image && thread_of[image] && gone -> atomic { /* drained and given back, by the owner's index */
			who = image; thread_of[who] = 0
		}
	:: gone && SITES_READ && THREADS_LEFT
		-> assert(!thread_of[image]);
		atomic { image = 0; gone = false }
		state = FREE
	:: over == IMAGES && tail == head && !gone && (state == FREE || state == CLAIMED) ->
		assert(state == FREE || !told[image] || dead[image]);
		break
	od
}

init {
	atomic { run process(1); run process(2); run process(3) }
}
