/* SPDX-License-Identifier: MIT */
/* levels.pml - model of levels and fork: a page that others write, a child that must not record in its parent's name. */
/*
 * A level is one word that a hook tests once, so a change needs no protocol. The child of a fork needs a protocol: it has the
 * parent's page of levels mapped, and the parent's entry in its thread-local storage. In the child, tracer/handler/levels.c and
 * handler.c set levels 0 on the child's own page, forget the entry, join the session, and inherit the levels from before the
 * fork. Signal handlers may trace, so they are held back from just before the fork until then. A process that changes levels
 * from outside is not held back. A child made behind the tracer's back does none of these steps. The kernel has cleared its
 * page (MADV_WIPEONFORK), unless that page is shared with a process that changes levels. Then the table of sites, which the
 * kernel clears too, reveals the fork (ptt_ring_site_slow).
 *
 * Checked: no event of a child is recorded as its parent's; a child records after it has joined, if its parent recorded at the
 * fork; a change from outside reaches the intended process, and no other.
 *
 *     spin -a levels.pml && cc -O2 -DCOLLAPSE -DSAFETY -o pan pan.c && ./pan -m200000
 *
 * With -DOPEN_SIGNALS, given to spin, signals are not held back: a handler then records as the parent.
 */
#define PARENT 0
#define CHILD 1
#define NOWHERE 2

byte level[2];        /* on the page of each process; the child has its own page after leave_control */
bool shares_page;     /* the child still sees the parent's page */
byte self[2] = NOWHERE; /* owner of the entry that a process would write to */
bool sites_known[2];  /* the table of sites has been filled since it was cleared */
bool shared_page;     /* a level control page is mapped */
byte inherited;
bool forked;
bool strange;         /* forked behind the tracer's back */
bool held[2];         /* signals wait */
bool over;
bool asked_parent_off;

/* A hook: one test of the level, then the handler. */
inline hook(who)
{
	if
	:: (who == CHILD && shares_page -> level[PARENT] : level[who]) > 0 ->
		if
		:: !sites_known[who] && who == CHILD && strange -> self[who] = NOWHERE /* leave_session: records no more */
		:: else ->
			sites_known[who] = true;
			if
			:: self[who] == NOWHERE && !(who == CHILD && strange) -> self[who] = who
			:: else
			fi;
			if
			:: self[who] != NOWHERE -> assert(self[who] == who)
			:: else
			fi
		fi
	:: else
	fi
}

proctype child()
{
	if
	:: !strange ->
		/* ptt_leave_control */
		shares_page = false;
		level[CHILD] = 0;
		/* the handler's nptl_trace_init */
		self[CHILD] = NOWHERE;
		self[CHILD] = CHILD;
		level[CHILD] = inherited;
		held[CHILD] = false
	:: else
	fi;
	hook(CHILD);
	hook(CHILD);
	assert(strange || inherited == 0 || self[CHILD] == CHILD);
	over = true
}

proctype signal_in_child()
{
	atomic { !held[CHILD] -> hook(CHILD) }
}

active proctype parent()
{
	level[PARENT] = 2;
	if
	:: shared_page = true
	:: true
	fi;
	hook(PARENT);
	if
	:: strange = true
	:: true
	fi;
#ifndef OPEN_SIGNALS
	held[PARENT] = !strange;
#endif
	inherited = level[PARENT];
	atomic { /* the fork */
		forked = true;
		held[CHILD] = held[PARENT];
		self[CHILD] = self[PARENT];
		if
		:: shared_page -> shares_page = true
		:: else -> level[CHILD] = 0 /* MADV_WIPEONFORK */
		fi;
		run child();
		run signal_in_child()
	}
	held[PARENT] = false;
	hook(PARENT);
	assert(!asked_parent_off || level[PARENT] == 0)
}

active proctype changer()
{
	/* by the page of the parent's pid */
	if
	:: atomic { shared_page && level[PARENT] > 0 && forked -> level[PARENT] = 0; asked_parent_off = true }
	:: true
	fi
}
