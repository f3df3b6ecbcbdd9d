/* SPDX-License-Identifier: MIT */
/*
 * sys/sdt.h - what glibc's own probe points become: trace points in libc.so, nothing anywhere else.
 *
 * Stands in front of SystemTap's header of that name while glibc is configured with --enable-systemtap. The provider is the
 * module that is compiled: libc, rtld, libm, ...
 */
#ifndef NPTL_TRACE_SDT_H
#define NPTL_TRACE_SDT_H

#define STAP_PROBE_ASM(provider, name, template)
#define STAP_PROBE_ASM_TEMPLATE(n)
#define STAP_PROBE_ASM_OPERANDS(n, ...)

#ifdef __ASSEMBLER__

#define STAP_PROBE(provider, name)
#define STAP_PROBE1(provider, name, a1)
#define STAP_PROBE2(provider, name, a1, a2)
#define STAP_PROBE3(provider, name, a1, a2, a3)
#define STAP_PROBE4(provider, name, a1, a2, a3, a4)

#elif defined NPTL_TRACE_HERE

#include <nptl_trace_points.h>

/* glibc's names are those of the list; the fourth argument of a probe is left out. */
#define STAP_PROBE(provider, name) nptl_trace_point(name, 0, 0, 0)
#define STAP_PROBE1(provider, name, a1) nptl_trace_point(name, a1, 0, 0)
#define STAP_PROBE2(provider, name, a1, a2) nptl_trace_point(name, a1, a2, 0)
#define STAP_PROBE3(provider, name, a1, a2, a3) nptl_trace_point(name, a1, a2, a3)
#define STAP_PROBE4(provider, name, a1, a2, a3, a4) nptl_trace_point(name, a1, a2, a3)

#else

#define STAP_PROBE(provider, name) ((void)0)
#define STAP_PROBE1(provider, name, a1) ((void)0)
#define STAP_PROBE2(provider, name, a1, a2) ((void)0)
#define STAP_PROBE3(provider, name, a1, a2, a3) ((void)0)
#define STAP_PROBE4(provider, name, a1, a2, a3, a4) ((void)0)

#endif

#endif
