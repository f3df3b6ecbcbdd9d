/* SPDX-License-Identifier: MIT */
/* record_handover.h - reports to ThreadSanitizer records that pass from one writer to the next one. */
/*
 * A writer's cells become another writer's by way of the reader, which moves tail. The reader has the stream mapped a second
 * time, and ThreadSanitizer, which goes by addresses, does not see that the two met there.
 */
#ifndef PX_HANDOVER_H
#define PX_HANDOVER_H

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>

/* What it takes for their meeting point. */
extern char px_handover __attribute__((visibility("hidden")));

/* px_hand_over - the record is committed: later writes to its cells come after it. px_take_over - the cells are ours. */
static inline void px_hand_over(void)
{
	__tsan_release(&px_handover);
}

static inline void px_take_over(void)
{
	__tsan_acquire(&px_handover);
}
#else
static inline void px_hand_over(void)
{
}

static inline void px_take_over(void)
{
}
#endif

#endif
