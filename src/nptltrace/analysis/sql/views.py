"""Views on the tables of a trace: the questions that come up most, as SQL."""

from __future__ import annotations

from nptltrace._dataclasses import dataclass

__all__ = ["THREAD_NAMES", "VIEWS", "View"]


@dataclass(frozen=True, slots=True)
class View:
    """A view, or a macro that returns a table or a value.

    Attributes:
        name: Name of the view or macro.
        meaning: Its meaning, for the documentation.
        body: The query, or the expression of a macro that returns a value.
        parameters: Parameters of a macro; None for a view.
        value: Whether it is a macro that returns a value.
    """

    name: str
    meaning: str
    body: str
    parameters: tuple[str, ...] | None = None
    value: bool = False

    @property
    def statement(self) -> str:
        """The SQL statement that creates the view or macro."""
        if self.parameters is None:
            return f"create view {self.name} as {self.body}"
        arguments = ", ".join(self.parameters)
        table = "" if self.value else "table "
        return f"create macro {self.name}({arguments}) as {table}{self.body}"

    @property
    def call(self) -> str:
        """The name with parameters, as in a query."""
        arguments = "" if self.parameters is None else f"({', '.join(self.parameters)})"
        return self.name + arguments


# The body of the view `thread_names`, without the name of the table of threads.
THREAD_NAMES = """
        select run_id, process, tid, gen, name as thread_name
        from {} where tid is not null"""

VIEWS = (
    View(
        "address",
        "An address as other commands show it: `address(addr)` is `0x7f…`.",
        "format('0x{:x}', number)",
        ("number",),
        value=True,
    ),
    View(
        "middle_ns",
        "The middle of the range that contains a duration. An octave has 16 ranges, as for "
        "percentiles.",
        """
        if(ns < 16, ns,
           (ns >> (length(bin(ns)) - 5) << (length(bin(ns)) - 5))
           + ((1::bigint << (length(bin(ns)) - 5)) - 1) // 2)""",
        ("ns",),
        value=True,
    ),
    View(
        "percentile_ns",
        "A percentile as in `ptt report`, within 3 %, of `n` durations. `most` is the longest "
        "duration. `exact` is the duration at `share`.",
        """
        if(ceil(share * n) >= n, most, least(most, middle_ns(exact)))""",
        ("exact", "share", "n", "most"),
        value=True,
    ),
    View(
        "thread_names",
        "The name of each thread. `gen` tells apart threads with the same id.",
        THREAD_NAMES.format("threads"),
    ),
    View(
        "stack_sites",
        "The innermost call site of each stack.",
        """
        select run_id, stack_id, site, function, file, line, module
        from stacks join sites using (run_id, site_id)""",
    ),
    View(
        "named_waits",
        "`waits` with the names of threads, object and call sites. For a join, the object is the "
        "thread.",
        """
        select w.*, t.thread_name, o.addr as object,
               if(w.op = 'join', 'thread ' || w.owner_tid, o.name) as object_name,
               s.site, s.function, s.file, s.line,
               ot.thread_name as owner_name, os.site as owner_site,
               wt.thread_name as waker_name, ws.site as waker_site
        from waits w
        left join thread_names t
               on (t.run_id, t.process, t.tid, t.gen) = (w.run_id, w.process, w.tid, w.gen)
        left join thread_names ot
               on (ot.run_id, ot.process, ot.tid, ot.gen)
                  = (w.run_id, w.owner_process, w.owner_tid, w.owner_gen)
        left join thread_names wt
               on (wt.run_id, wt.process, wt.tid, wt.gen)
                  = (w.run_id, w.waker_process, w.waker_tid, w.waker_gen)
        left join objects o on (o.run_id, o.lock_id) = (w.run_id, w.lock_id)
        left join stack_sites s on (s.run_id, s.stack_id) = (w.run_id, w.stack_id)
        left join stack_sites os on (os.run_id, os.stack_id) = (w.run_id, w.owner_stack)
        left join stack_sites ws on (ws.run_id, ws.stack_id) = (w.run_id, w.waker_stack)""",
    ),
    View(
        "named_holds",
        "`holds` with the names of thread, object and call sites.",
        """
        select h.*, t.thread_name, o.kind, o.addr as object, o.name as object_name,
               s.site, s.function, s.file, s.line, rs.site as release_site
        from holds h
        left join thread_names t
               on (t.run_id, t.process, t.tid, t.gen) = (h.run_id, h.process, h.tid, h.gen)
        left join objects o on (o.run_id, o.lock_id) = (h.run_id, h.lock_id)
        left join stack_sites s on (s.run_id, s.stack_id) = (h.run_id, h.stack_id)
        left join stack_sites rs on (rs.run_id, rs.stack_id) = (h.run_id, h.release_stack)""",
    ),
    View(
        "contention_by_object",
        "Contended waits, idle time and holds of each used object, the most waited for first. As "
        "in `ptt report`, objects that follow one another at an address are one row, and "
        "`lock_id` is the first object.",
        """
        select o.name, o.kind, o.addr as object,
               coalesce(w.waits, 0) as waits, coalesce(w.wait_ns, 0) as wait_ns,
               coalesce(w.held_ns, 0) as held_ns, coalesce(w.wake_ns, 0) as wake_ns,
               coalesce(w.wait_max_ns, 0) as wait_max_ns, w.wait_p50_ns, w.wait_p99_ns,
               coalesce(w.idle_ns, 0) as idle_ns, coalesce(h.holds, 0) as holds,
               coalesce(h.hold_ns, 0) as hold_ns, coalesce(h.hold_max_ns, 0) as hold_max_ns,
               o.threads_alike as threads, g.max_waiters, o.pid, o.lock_id, o.run_id,
               g.generations, coalesce(s.site, '') as init_site
        from objects o
        join (
            select run_id, first_alike, count(*) as generations, max(max_waiters) as max_waiters
            from objects group by all) g on (g.run_id, g.first_alike) = (o.run_id, o.lock_id)
        left join (
            select w.run_id, a.first_alike,
                   count(*) filter (class = 'contended') as waits,
                   (sum(dur_ns) filter (class = 'contended'))::bigint as wait_ns,
                   sum(held_ns)::bigint as held_ns, sum(wake_ns)::bigint as wake_ns,
                   max(dur_ns) filter (class = 'contended') as wait_max_ns,
                   percentile_ns(
                       quantile_disc(dur_ns, 0.5) filter (class = 'contended'), 0.5,
                       count(*) filter (class = 'contended'),
                       max(dur_ns) filter (class = 'contended')) as wait_p50_ns,
                   percentile_ns(
                       quantile_disc(dur_ns, 0.99) filter (class = 'contended'), 0.99,
                       count(*) filter (class = 'contended'),
                       max(dur_ns) filter (class = 'contended')) as wait_p99_ns,
                   (sum(dur_ns) filter (class = 'idle'))::bigint as idle_ns
            from waits w join objects a on (a.run_id, a.lock_id) = (w.run_id, w.lock_id)
            group by all) w on (w.run_id, w.first_alike) = (o.run_id, o.lock_id)
        left join (
            select h.run_id, a.first_alike, count(*) as holds, sum(dur_ns)::bigint as hold_ns,
                   max(dur_ns) as hold_max_ns
            from holds h join objects a on (a.run_id, a.lock_id) = (h.run_id, h.lock_id)
            group by all) h on (h.run_id, h.first_alike) = (o.run_id, o.lock_id)
        left join stack_sites s on (s.run_id, s.stack_id) = (o.run_id, o.init_stack)
        where o.kind <> 'thread' and o.threads > 0
        order by wait_ns desc, idle_ns desc, hold_ns desc, o.lock_id""",
    ),
    View(
        "contention_by_site",
        "Contended waits by place in the program, the longest first. `kind` is the kind of the "
        "object. If a thread waited for the mutex of a condition, `kind` is `mutex`.",
        """
        select s.site, w.kind,
               sum(w.waits)::bigint as waits, sum(w.wait_ns)::bigint as wait_ns,
               sum(w.held_ns)::bigint as held_ns, sum(w.wake_ns)::bigint as wake_ns,
               max(w.wait_max_ns) as wait_max_ns,
               count(distinct w.lock_id) as objects, count(distinct (w.tid, w.gen)) as threads,
               s.function, s.file, s.line, w.pid, w.run_id
        from (
            select run_id, stack_id, kind, lock_id, pid, tid, gen, count(*) as waits,
                   sum(dur_ns)::bigint as wait_ns, sum(held_ns)::bigint as held_ns,
                   sum(wake_ns)::bigint as wake_ns, max(dur_ns) as wait_max_ns
            from waits where class = 'contended' group by all) w
        left join stack_sites s on (s.run_id, s.stack_id) = (w.run_id, w.stack_id)
        group by all order by wait_ns desc, s.site""",
    ),
    View(
        "blame",
        "Holders of a lock while others waited, and where they took the lock: how long others "
        "waited during the holds, and how many waits began then.",
        """
        select o.name as object_name, o.addr as object, h.tid as owner_tid,
               t.thread_name as owner_name, s.site as owner_site,
               h.waits, h.wait_caused_ns, h.wait_max_ns,
               h.gen as owner_gen, h.lock_id, o.pid, h.run_id
        from (
            select run_id, lock_id, process, tid, gen, site_id, sum(waits)::bigint as waits,
                   sum(wait_caused_ns)::bigint as wait_caused_ns, max(wait_max_ns) as wait_max_ns,
                   max(charged) as charged
            from (
                select b.run_id, b.lock_id, b.process, b.tid, b.gen, bs.site_id, 0 as waits,
                       b.wait_caused_ns, null::bigint as wait_max_ns, true as charged
                from blames b
                left join stacks bs on (bs.run_id, bs.stack_id) = (b.run_id, b.stack_id)
                union all
                select v.run_id, v.lock_id, v.owner_process, v.owner_tid, v.owner_gen, vs.site_id,
                       1, 0, v.dur_ns, false
                from waits v
                left join stacks vs on (vs.run_id, vs.stack_id) = (v.run_id, v.owner_stack)
                where v.class = 'contended')
            group by all) h
        join objects o on (o.run_id, o.lock_id) = (h.run_id, h.lock_id)
        left join thread_names t
               on (t.run_id, t.process, t.tid, t.gen) = (h.run_id, h.process, h.tid, h.gen)
        left join sites s on (s.run_id, s.site_id) = (h.run_id, h.site_id)
        where h.charged or h.tid is not null
        order by h.wait_caused_ns desc, h.lock_id""",
    ),
    View(
        "idle_vs_contended",
        "How each thread spent its time: not waiting, waiting for others, or waiting for work.",
        """
        select t.tid, t.name,
               greatest(t.last_ns, max(w.t_ns + w.dur_ns)) - t.start_ns as life_ns,
               t.running_ns,
               coalesce(sum(w.dur_ns) filter (w.class = 'contended'), 0)::bigint as wait_ns,
               coalesce(sum(w.dur_ns) filter (w.class = 'idle'), 0)::bigint as idle_ns,
               coalesce(sum(w.dur_ns) filter (w.class = 'join'), 0)::bigint as join_ns,
               coalesce(sum(w.dur_ns) filter (w.class = 'timeout'), 0)::bigint as timeout_ns,
               coalesce(sum(w.dur_ns) filter (w.class = 'cancelled'), 0)::bigint as cancelled_ns,
               coalesce(sum(w.dur_ns) filter (w.class = 'unknown'), 0)::bigint as unknown_ns,
               coalesce(sum(w.dur_ns) filter (w.class = 'gil'), 0)::bigint as gil_ns,
               t.gen, t.pid, t.run_id
        from threads t left join waits w
          on (w.run_id, w.process, w.tid, w.gen) = (t.run_id, t.process, t.tid, t.gen)
        where t.tid is not null
        group by t.run_id, t.pid, t.tid, t.gen, t.name, t.start_ns, t.last_ns, t.running_ns
        order by t.start_ns""",
    ),
    View(
        "blocked_loops",
        "Where the thread of an asyncio event loop waited in a callback or a task. During the "
        "wait, the loop ran no other callback or task. The trace has no waits for sockets.",
        """
        select w.pid, w.tid, w.thread_name, w.site, w.class, count(*)::bigint as waits,
               sum(w.dur_ns)::bigint as wait_ns, max(w.dur_ns) as wait_max_ns, w.run_id
        from named_waits w
        join (
          select distinct f.run_id, f.stack_id
          from (select run_id, stack_id, unnest(frames) as site_id from stacks) f
          join sites s on (s.run_id, s.site_id) = (f.run_id, f.site_id)
          where s.file = 'events.py' and s.function in ('Handle._run', '_run')
        ) i on (i.run_id, i.stack_id) = (w.run_id, w.stack_id)
        group by w.run_id, w.pid, w.tid, w.thread_name, w.site, w.class
        order by wait_ns desc""",
    ),
    View(
        "thread_timeline",
        "Time spans of each thread: `not waiting`, or blocked, with the class and the object of "
        "the wait.",
        """
        with blocked as (
            select run_id, process, pid, tid, gen, t_ns as start_ns, t_ns + dur_ns as end_ns,
                   class as state, op, lock_id,
                   max(t_ns + dur_ns) over (
                       partition by run_id, process, tid, gen order by t_ns, wait_id
                       rows between unbounded preceding and 1 preceding) as before_ns
            from waits),
        lives as (
            select run_id, process, pid, tid, gen, start_ns, last_ns as end_ns
            from threads where tid is not null),
        gaps as (
            select b.run_id, b.process, b.pid, b.tid, b.gen,
                   greatest(coalesce(b.before_ns, l.start_ns), l.start_ns) as start_ns,
                   b.start_ns as end_ns
            from blocked b join lives l
              on (b.run_id, b.process, b.tid, b.gen) = (l.run_id, l.process, l.tid, l.gen)
            union all
            select l.run_id, l.process, l.pid, l.tid, l.gen,
                   coalesce(max(b.end_ns), l.start_ns), l.end_ns
            from lives l left join blocked b
              on (b.run_id, b.process, b.tid, b.gen) = (l.run_id, l.process, l.tid, l.gen)
            group by l.run_id, l.process, l.pid, l.tid, l.gen, l.start_ns, l.end_ns)
        select tid, start_ns, end_ns, state, op, lock_id, gen, process, pid, run_id from blocked
        union all
        select tid, start_ns, end_ns, 'not waiting' as state, null as op, null as lock_id,
               gen, process, pid, run_id
        from gaps where end_ns > start_ns
        order by run_id, process, tid, start_ns""",
    ),
    View(
        "open_waits",
        "Waits that had not ended at the end of the trace. They show why a program hangs. In a "
        "window, `begin_ns` is the time when the wait began.",
        "select * from named_waits where open order by t_ns",
    ),
    View(
        "wait_graph",
        "Who waited for whom at the time `at_ns`.",
        """
        select tid, thread_name, op, object, object_name, owner_tid, owner_name, owner_site, site,
               at_ns - t_ns as age_ns, dur_ns, class, lock_id, pid, run_id
        from named_waits
        where t_ns <= at_ns and (t_ns + dur_ns > at_ns or open)
        order by t_ns""",
        ("at_ns",),
    ),
    View(
        "held_at",
        "Which locks were held at the time `at_ns`.",
        """
        select tid, thread_name, mode, object, object_name, site, at_ns - t_ns as age_ns, dur_ns,
               lock_id, pid, run_id
        from named_holds
        where t_ns <= at_ns and (t_ns + dur_ns > at_ns or open)
        order by t_ns""",
        ("at_ns",),
    ),
    View(
        "blocked_chains",
        "Waits for a thread that was waiting itself. `depth` 0 is the wait that delayed all other "
        "waits of its chain. `path` leads to it: thread → object → holder of the object → ….",
        """
        with recursive chain as (
            select run_id, wait_id, chain_id, 0 as depth,
                   format('thread {} → {}', tid, object_name) as path
            from named_waits where parent_wait is null
            union all
            select w.run_id, w.wait_id, w.chain_id, c.depth + 1,
                   format('thread {} → ', w.tid)
                   || if(w.op = 'join', '', w.object_name || ' → ') || c.path
            from chain c join named_waits w
              on w.run_id = c.run_id and w.parent_wait = c.wait_id and w.chain_id = c.chain_id)
        select w.chain_id, c.depth, c.path, w.tid, w.thread_name, w.object, w.object_name,
               w.owner_tid, w.t_ns, w.dur_ns, w.class, w.site, w.wait_id, w.lock_id, w.pid, w.run_id
        from chain c join named_waits w on (w.run_id, w.wait_id) = (c.run_id, c.wait_id)
        where exists (select 1 from waits p
                      where (p.run_id, p.chain_id) = (w.run_id, c.chain_id)
                        and p.wait_id <> p.chain_id)
        order by w.run_id, c.chain_id, c.depth, w.wait_id""",
    ),
    View(
        "lock_order_cycles",
        "Cycles of lock orders. `ptt check` reports the cycles with an empty `suppressed`; "
        "otherwise `suppressed` has the reasons. `guarded`: another lock was held. `one_thread`: "
        "two of the orders are of one thread. `tries`: a request did not wait forever.",
        """
        select list_transform(c.lock_ids, lambda l: (names.of[l])) as object_names,
               list_contains(c.suppressed, 'gate') as guarded,
               list_contains(c.suppressed, 'one-thread') as one_thread,
               list_contains(c.suppressed, 'try') as tries, c.suppressed,
               c.ts_ns, c.lock_ids, c.pid, c.run_id
        from lock_cycles c join (
            select run_id, map(list(lock_id), list(name)) as of from objects group by run_id) names
          on names.run_id = c.run_id
        order by c.ts_ns""",
    ),
    View(
        "who_wakes_whom",
        "How often a thread ended waits of another thread, and how long the other thread then "
        "took to continue.",
        """
        select u.waker_tid, a.thread_name as waker_name, u.wakee_tid,
               b.thread_name as wakee_name, u.kind, count(*) as count,
               avg(u.woken_ns - u.t_ns)::bigint as latency_ns,
               max(u.woken_ns - u.t_ns) as latency_max_ns, u.waker_gen, u.wakee_gen,
               u.pid, u.run_id
        from wakeups u
        left join thread_names a
               on (a.run_id, a.process, a.tid, a.gen)
                  = (u.run_id, u.waker_process, u.waker_tid, u.waker_gen)
        left join thread_names b
               on (b.run_id, b.process, b.tid, b.gen)
                  = (u.run_id, u.process, u.wakee_tid, u.wakee_gen)
        group by all order by count desc, u.waker_tid, u.wakee_tid""",
    ),
)
