/* SPDX-License-Identifier: MIT */
/* world.h - the ends of what world.c begins. */
#ifndef WORLD_H
#define WORLD_H

/* Everything held until now is released. */
void let_go(void);

/* The case is over: wait for its threads. */
void forget(void);

#endif
