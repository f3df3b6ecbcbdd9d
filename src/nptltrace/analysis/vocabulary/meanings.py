"""What each name in JSON documents, tables and exports means, and which type it has everywhere.

An element of a list stands for one thing: `name`, `kind` and `count` are those of that thing. Where
an element is about a thread and an object, the names are `thread_name` and `object_name`. A plural
is a number where it counts, and a list where it holds the things themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["NAMES", "TYPES", "Name", "Type"]

Type = Literal[
    "address", "call site", "text", "number", "count", "ns", "unix ns", "share", "flag", "list",
    "counts", "element",
]  # fmt: skip

# What a value of each type is.
TYPES: dict[Type, str] = {
    "address": "the text `0x…` in what commands print, JSON and CSV too; in tables and exports of "
    "them an unsigned 64-bit integer",
    "call site": "text: `function+0x1c (file:line)`, or `0x…` where there are no symbols, or empty",
    "text": "text; empty, or in tables null, where there is none",
    "number": "a whole number that identifies something",
    "count": "how many: a whole number",
    "ns": "nanoseconds, a whole number: times since the traceset's start, and durations",
    "unix ns": "nanoseconds since 1970, a whole number",
    "share": "a number with a fraction",
    "flag": "true or false",
    "list": "a list; in tables of numbers or texts, in JSON of elements as well",
    "counts": "an object whose values are whole numbers",
    "element": "an object of the shape that is given",
}


@dataclass(frozen=True, slots=True)
class Name:
    """A name.

    Attributes:
        type: Its type.
        meaning: What it says.
        plural: It may be the number of things as well as their list.
    """

    type: Type
    meaning: str
    plural: bool = False


def _things(meaning: str) -> Name:
    return Name("list", meaning, plural=True)


NAMES: dict[str, Name] = {
    # What is meant.
    "object": Name("address", "address of an object"),
    "object_name": Name("text", "its global variable or alias; of a table, its address if none"),
    "object_names": Name("list", "the names of `objects`, by their places"),
    "name": Name("text", "name of the thing: variable or alias of an object, name of a thread"),
    "thread_name": Name("text", "name of a thread"),
    "owner_name": Name("text", "name of the thread `owner_tid`"),
    "waker_name": Name("text", "name of the thread `waker_tid`"),
    "kind": Name("text", "what sort of thing it is: `mutex`, … of objects and of waits for them; "
                 "of findings, what is wrong"),
    "pid": Name("number", "process id"),
    "ppid": Name("number", "process id of the parent"),
    "tid": Name("number", "thread id of the kernel"),
    "owner_tid": Name("number", "the thread that had the object when the wait began"),
    "owner_site": Name("call site", "where that thread had taken it"),
    "holder_tid": Name("number", "the thread that has the object at the end"),
    "holder_site": Name("call site", "where that thread took it"),
    "waker_tid": Name("number", "the thread that ended the wait"),
    "waker_site": Name("call site", "where that thread did so"),
    "release_site": Name("call site", "where a lock was released"),
    "because_of_tid": Name("number", "the thread that had the object when the waits began, or that "
                           "ended them where nothing is held"),
    "because_of_site": Name("call site", "where that thread had taken it, or ended them"),
    "site": Name("call site", "where in the program; of an event its address, and `site_name` the "
                 "text"),
    "site_name": Name("call site", "call site of an event, as text"),
    "site_address": Name("address", "address of a call site; its high bits say of which module"),
    "init_site": Name("call site", "where an object was initialized"),
    "first_site": Name("call site", "where an object was first used"),
    "event": Name("text", "name of an event type"),
    "source": Name("text", "what reported an event: `nptl`, `handler` or `user`"),
    "fields": Name("text", "the event's own fields, `name=value` each"),
    "cpu": Name("number", "processor; null when unknown"),
    "exe": Name("text", "path of a program"),
    "module": Name("text", "a file that is mapped into a process"),
    "trace": Name("text", "directory of a trace"),
    "class": Name("text", "class of a wait: `contended`, `idle`, `join`, `timeout`, `cancelled`, "
                  "`unknown`, `gil`"),
    # When.
    "ts_ns": Name("ns", "when it happened, or was found"),
    "t_ns": Name("ns", "when it began"),
    "dur_ns": Name("ns", "how long it took, or has gone on"),
    "since_ns": Name("ns", "when the interval of a snapshot began"),
    "start_ns": Name("ns", "first event of a thread; where the critical path begins"),
    "end_ns": Name("ns", "end of a thread, or the last that is known of it; in tables null unless "
                   "the end itself is in the trace"),
    "first_ns": Name("ns", "first event, or first use"),
    "last_ns": Name("ns", "last event, or last use"),
    "start_unix_ns": Name("unix ns", "when recording began"),
    "elapsed_ns": Name("ns", "from the first event to the end of the last wait or event"),
    "duration_ns": Name("ns", "from the first event to the last, or to the end of a process that "
                        "was killed"),
    "age_ns": Name("ns", "for how long it had gone on at a moment"),
    "life_ns": Name("ns", "from the first event of a thread to its end"),
    # Waits and holds.
    "waits": Name("count", "contended waits; where there is a `class`, those of that class"),
    "wait_ns": Name("ns", "their duration"),
    "held_ns": Name("ns", "the part of contended waits in which the object was held"),
    "wake_ns": Name("ns", "the rest of contended waits, until the threads were awake"),
    "wait_max_ns": Name("ns", "the longest of `waits`"),
    "wait_p50_ns": Name("ns", "their median, within 3 %"),
    "wait_p99_ns": Name("ns", "their 99th percentile, within 3 %"),
    "wait_caused_ns": Name("ns", "how long others waited for what was held: the part of their "
                           "`held_ns`"),
    "blocked_ns": Name("ns", "duration of waits of all classes"),
    "running_ns": Name("ns", "the rest of a thread's life: not waiting"),
    "silent_ns": Name("ns", "of `running_ns`, stretches of 10 ms and more without any event"),
    "cpu_ns": Name("ns", "how long a thread had a processor; null when unknown, and in a part of a "
                   "trace"),
    "ready_ns": Name("ns", "how long a thread could have run and had no processor; null likewise"),
    "buffer_wait_ns": Name("ns", "how long a thread waited for room in the trace buffers"),
    "holds": Name("count", "how often locks were held"),
    "hold_ns": Name("ns", "for how long"),
    "hold_max_ns": Name("ns", "the longest of `holds`"),
    "held": Name("count", "locks that a thread holds at the end"),
    "released": Name("flag", "the place is where the lock was released: where it was taken is "
                     "not known"),
    "max_waiters": Name("count", "most threads that waited at once"),
    "waiters": Name("count", "threads that wait at the end"),
    "waiting": Name("count", "threads in a contended wait at the end"),
    "wasted_signals": Name("count", "signals that found no waiter"),
    "generations": Name("count", "objects that were at this address, one after the other"),
    "longest_ns": Name("ns", "how long the first of the waiters has waited"),
    "total_waits": Name("count", "`waits` since the start"),
    "total_wait_ns": Name("ns", "`wait_ns` since the start"),
    "total_held_ns": Name("ns", "`held_ns` since the start"),
    "total_wake_ns": Name("ns", "`wake_ns` since the start"),
    **{
        f"{name}_waits": Name("count", f"waits of class `{name}`")
        for name in ("idle", "join", "timeout", "cancelled", "unknown", "gil")
    },
    **{
        f"{name}_ns": Name("ns", f"duration of waits of class `{name}`")
        for name in ("idle", "join", "timeout", "cancelled", "unknown", "gil")
    },
    "futex_waits": Name("count", "waits for futexes of no lock that is known"),
    "by_kind": Name("counts", "`blocked_ns` by kind of object"),
    # The critical path.
    "run_ns": Name("ns", "how long the critical path goes along a thread that does not wait"),
    "latency_ns": Name("ns", "from wake-ups until the threads went on"),
    "open_ns": Name("ns", "waits on the critical path that nothing in the trace ended"),
    "segments": Name("count", "pieces of the critical path"),
    "resolution_ns": Name("ns", "shorter waits are left out of the critical path; 0 when none is"),
    # A running process.
    "moved": Name("flag", "the thread ran while it was watched"),
    "timed": Name("flag", "the wait has a time limit"),
    "stack": Name("list", "the calls that led to a place, the innermost first"),
    # Findings.
    "severity": Name("text", "`error` or `warning`"),
    "rule": Name("text", "the promise that was broken"),
    "message": Name("text", "a sentence that says it"),
    "text": Name("text", "an event as a sentence"),
    "suspect": Name("flag", "memory that was used again for another object may explain it"),
    "count": Name("count", "how often"),
    "checked": Name("counts", "how often each rule was applied"),
    "skipped": Name("counts", "how often a rule was not applied, by reason"),
    "gaps": Name("list", "why events may be missing, a sentence each"),
    # A trace.
    "level": Name("text", "detail level, as it was asked for"),
    "nptl": Name("text", "the thread library: `stock`, or the name of a trace-enabled one"),
    "sched": Name("text", "where times without a processor are known from: `perf`, the kernel's "
                  "records of context switches; `schedstat`; `rseq` where at most is known how "
                  "long they are in all; `none`"),
    "state": Name("text", "`running`, `complete`, `recovered` or `killed`; of the view "
                  "`thread_timeline`, what a thread did; of a thread of `ptt hang`, `runnable`, "
                  "`asleep` in a system call, `waiting` for others, or `stopped`"),
    "cmdline": Name("list", "the command line; in tables one text, quoted for a shell"),
    "bytes": Name("count", "size of the packets"),
    "damage_bytes": Name("count", "bytes that could not be read"),
    "lost": Name("count", "events that are known to be lost"),
    "lost_by_cause": Name("counts", "the same by cause"),
    "untraced_processes": Name("count", "processes that ran untraced"),
    "event_types": Name("counts", "events by the name of their type"),
    "why": Name("text", "why not all of a module is in the trace"),
    "running": Name("flag", "the recording goes on"),
    # A comparison.
    "by": Name("text", "what the rows are: `site`, `object` or `thread`"),
    "per": Name("text", "what figures are divided by"),
    "metric": Name("text", "name of a figure"),
    "before": Name("share", "mean of the runs before"),
    "after": Name("share", "mean of the runs after"),
    "values_before": Name("list", "the figure in each run before"),
    "values_after": Name("list", "the figure in each run after"),
    "change_percent": Name("share", "the change in per cent; null where it was nothing before"),
    "chance": Name("share", "how probable as clear a change is if nothing changed"),
    "verdict": Name("text", "`sure`, `chance` or `unknown`"),
    "confidence": Name("share", "how sure a change must be"),
    "enough_runs": Name("flag", "there are runs enough to be that sure"),
    # Many runs.
    "store": Name("text", "where the store of the runs is"),
    "run_id": Name("text", "a run, by its UUID"),
    "first_run_id": Name("text", "the first run that has it"),
    "last_run_id": Name("text", "the last run that has it"),
    "first_unix_ns": Name("unix ns", "when that began"),
    "last_unix_ns": Name("unix ns", "when that began"),
    "added_unix_ns": Name("unix ns", "when it was added to the store"),
    "host": Name("text", "name of the machine"),
    "hosts": Name("list", "names of the machines"),
    "summary": Name("flag", "sums and long waits are in the store, and nothing else"),
    "labels": Name("list", "what a run is called in comparisons, `NAME=VALUE` each"),
    "value": Name("text", "what runs have in common: of a label, a host or a program"),
    "values": Name("list", "the values that the runs have of the label that was asked for"),
    "value_before": Name("text", "what the runs before have in common"),
    "value_after": Name("text", "what the runs after have in common"),
    "place": Name("text", "function and file, the same in every build of the program"),
    "run_mean_ns": Name("ns", "contended waiting of a run, the mean"),
    "run_p50_ns": Name("ns", "the median"),
    "run_p90_ns": Name("ns", "the 90th percentile"),
    "run_max_ns": Name("ns", "that of the run that waited longest"),
    "before_ns": Name("ns", "mean of the runs before"),
    "after_ns": Name("ns", "mean of the runs after"),
    "held_name": Name("text", "the lock that was held"),
    "wanted_name": Name("text", "the lock that was asked for meanwhile"),
    "held_site": Name("call site", "where the one that was held had been taken"),
    "runs": _things("runs: their number, or their elements"),
    "places": _things("places in the program, the worst first"),
    "groups": _things("groups of runs, in the order in which their first runs began"),
    "changes": _things("changes from one group of runs to the next that are hardly chance"),
    "orders": _things("orders of locks that form a cycle"),
    # Things, and numbers of them.
    "events": _things("events: their number, or those that prove a finding"),
    "threads": _things("threads: their number, their elements, or their thread ids"),
    "objects": _things("objects: their number, their elements, or their addresses"),
    "sites": _things("call sites: their elements, or their texts"),
    "processes": _things("processes"),
    "pairs": _things("what one thread did with one object"),
    "stacks": _things("call stacks"),
    "rows": _things("what is compared"),
    "runs_before": _things("the runs before"),
    "runs_after": _things("the runs after"),
    "links": _things("objects through which the critical path goes"),
    "blamed": _things("threads that held the object while others waited, the worst first"),
    "wakers": _things("threads that ended waits for it, the most important first"),
    "waited_for": _things("what a thread waited for, the longest first"),
    "never_ended": _things("waits that had not ended when the trace did"),
    "deadlocks": _things("cycles of these, each wait for an object that the next one's thread has"),
    "findings": _things("findings, the earliest first"),
    "violations": _things("broken promises of the thread library, the earliest first"),
    "uncovered": _things("modules of which not all that they do is in the trace"),
    "critical_path": Name("element", "the critical path to the last event"),
    "waits_for": Name("element", "what a thread waits for now; null when nothing"),
    "metrics": Name("element", "the figures that changed, by name"),
    "total": Name("element", "the same of everything together"),
}  # fmt: skip
