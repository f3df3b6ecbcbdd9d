/* SPDX-License-Identifier: MIT */
/* black_box.h - the handler "ring" without a recorder: the newest events stay in the memory of the process. */
#ifndef PTT_BLACK_BOX_H
#define PTT_BLACK_BOX_H

/*
 * ptt_box_begin - begin a black box
 * @args: PTT_BOX_NAME, then events=N, memory=SIZE or stacks=N in any order, see ptt_parse_size(); and errors=PLACE if ptt
 * started the program, for ptt_may_complain()
 * Makes system calls. Return: 0 or -errno; -EINVAL has printed why, if this process may print.
 */
int ptt_box_begin(char **args) __attribute__((visibility("hidden")));

/* ptt_box_began - turn tracing off if there is no box, and say why. @args, @err: of ptt_box_begin(), and its 0 or -errno */
void ptt_box_began(char **args, int err) __attribute__((visibility("hidden")));

#endif
