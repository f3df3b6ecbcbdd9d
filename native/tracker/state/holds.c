/* SPDX-License-Identifier: MIT */
/* holds.c - holds that are looked for. */
#include "hot.h"

uint32_t tk_hold_find(const struct tracker *t, uint32_t thread, uint32_t object)
{
	uint32_t hold = TK_THREAD(t, thread)->holds, of_object = TK_OBJECT(t, object)->holds;

	/* Along the shorter one of two lists: a thread may hold many locks, and a lock may have many readers. */
	while (hold && of_object) {
		if (TK_HOLD(t, hold)->object == object)
			return hold;
		if (TK_HOLD(t, of_object)->thread == thread)
			return of_object;
		hold = TK_HOLD(t, hold)->thread_next;
		of_object = TK_HOLD(t, of_object)->object_next;
	}
	return 0;
}
