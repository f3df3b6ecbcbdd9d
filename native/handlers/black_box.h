/* SPDX-License-Identifier: MIT */
/* black_box.h - the handler "ring" without a recorder: the newest events stay in the memory of the process. */
#ifndef PTT_BLACK_BOX_H
#define PTT_BLACK_BOX_H

#include <stdbool.h>

/* ptt_box_is_wanted - do the arguments of the handler ask for a black box, with PTT_BOX_NAME as the first of them? */
bool ptt_box_is_wanted(char **args) __attribute__((visibility("hidden")));

/*
 * ptt_box_begin - begin a black box
 * @args: PTT_BOX_NAME, then events=N, memory=SIZE or stacks=N in any order; SIZE may end with K, M or G
 * Makes system calls. Return: 0 or -errno; -EINVAL has printed why.
 */
int ptt_box_begin(char **args) __attribute__((visibility("hidden")));

/* ptt_box_began - turn tracing off if there is no box, and say why. @err: 0 or -errno, as ptt_box_begin() returns it */
void ptt_box_began(int err) __attribute__((visibility("hidden")));

#endif
