/* SPDX-License-Identifier: MIT */
/* own.h - the calling process as one that may have moved to another user, and that gives names to event types. */
#ifndef PX_OWN_H
#define PX_OWN_H

#include "event.h"
#include "guard.h"

/* px_own_follow_user - move to the directory of the effective user, if that is another one by now. Under the guard. */
void px_own_follow_user(void);

/* px_open_name - id of a name in the calling process, made if there is room. Under the guard. */
trace_event_id_t px_open_name(const char *name);

#endif
