/* SPDX-License-Identifier: MIT */
/* off.c - all of the tracer when it is built without event generators: nothing is hooked, nothing exported. */

/* C wants a file to hold something. */
typedef int ptt_no_tracer;
