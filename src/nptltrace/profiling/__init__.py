"""Profiles of contention: adds up the waits of a recording while it runs, and writes the sums.

`recording.profile` hands segments of the recording to `worker`, in a second process. `sums` adds up
the waits of a segment, and of the waits that go on from one segment to the next. `pprof_file` and
`table` write an `Interval` in one format each.
"""
