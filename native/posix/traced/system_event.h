/* SPDX-License-Identifier: MIT */
/* system_event.h - system events that PTT adds to the events of the standard. */
#ifndef PX_SYSTEM_EVENT_H
#define PX_SYSTEM_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* px_system_type - the id of the system event type @name, made if there is none; 0 if there is no room. Blocks. */
uint32_t px_system_type(const char *name);

/* px_is_traced - does any stream trace this process? A load and a compare. */
bool px_is_traced(void);

/* px_system_event - record an event in every stream that records its type. Async-signal-safe, keeps errno, takes no lock. */
void px_system_event(uint32_t type, const void *data, size_t size, void *address);

#endif
