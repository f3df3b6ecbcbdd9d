/* SPDX-License-Identifier: MIT */
/* rebind.h - leads calls of the program to the hooks, and back, in a process whose modules were bound without them. */
#ifndef PTT_REBIND_H
#define PTT_REBIND_H

#include <stdbool.h>
#include <stdint.h>

#include "tracer.h"

struct ptt_rebound {
	uint32_t modules; /* looked at */
	uint32_t calls;	  /* entries that lead to a hook now */
	uint32_t refused; /* that could not be changed */
};

/*
 * ptt_rebind - have the imported functions of all modules lead to the hooks, or to what is behind them
 * @hooked: to the hooks
 * @changed: only if modules have come or gone since the last time
 * By the one thread that does this. Waits for the lock of the dynamic linker, which is held meanwhile: no module comes or
 * goes, and none is half loaded. Others may call the functions all the time.
 * Return: false if nothing had changed.
 */
bool ptt_rebind(bool hooked, bool changed, struct ptt_rebound *done) HIDDEN;

#endif
