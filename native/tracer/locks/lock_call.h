/* SPDX-License-Identifier: MIT */
/* lock_call.h - a call of a function of another library's lock, whichever it is. */
#ifndef PTT_LOCK_CALL_H
#define PTT_LOCK_CALL_H

#include "tracer.h"

/* The arguments of a call, in the registers of integers and pointers. */
struct ptt_lock_arguments {
	long at[6];
};

/*
 * ptt_lock_call - make the call and report what it does
 * @number: of the function
 * @site: where it returns to
 *
 * A program that looks whether a library is there, by a weak reference, finds a stub behind which there is nothing: a call of it
 * does nothing.
 * Return: what the function behind the stub returns.
 */
long ptt_lock_call(struct ptt_lock_arguments *with, uint32_t number, void *site) HIDDEN;

#endif
