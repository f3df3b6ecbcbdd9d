/* SPDX-License-Identifier: MIT */
/* off.c - the whole tracer if it is built without event generators: it hooks and exports nothing. */

/* ISO C forbids an empty translation unit. */
typedef int ptt_no_tracer;
