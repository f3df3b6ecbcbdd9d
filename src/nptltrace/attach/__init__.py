"""Recording of a running process, for `ptt attach` and `nptltrace.record_here()`."""
