/* SPDX-License-Identifier: MIT */
/* limits.c - sysconf() for the limits of tracing, which the C library does not know. */
#include "posix.h"

/* The C library's sysconf(), under its internal name. */
long __sysconf(int name);

#define EXPORT __attribute__((visibility("default")))

EXPORT long sysconf(int name)
{
	switch (name) {
	case _SC_TRACE:
		return _POSIX_TRACE;
	case _SC_TRACE_EVENT_FILTER:
		return _POSIX_TRACE_EVENT_FILTER;
	case _SC_TRACE_INHERIT:
		return _POSIX_TRACE_INHERIT;
	case _SC_TRACE_LOG:
		return _POSIX_TRACE_LOG;
	case _SC_TRACE_EVENT_NAME_MAX:
		return TRACE_EVENT_NAME_MAX;
	case _SC_TRACE_NAME_MAX:
		return TRACE_NAME_MAX;
	case _SC_TRACE_SYS_MAX:
		return TRACE_SYS_MAX;
	case _SC_TRACE_USER_EVENT_MAX:
		return TRACE_USER_EVENT_MAX;
	default:
		return __sysconf(name);
	}
}
