/* SPDX-License-Identifier: MIT */
/* place.h - where a stream is found: its file, its slot in the registry, its entry in the page of the process traced. */
#ifndef PX_PLACE_H
#define PX_PLACE_H

#include "trace_id.h"

/* px_place_page - map the page of the process traced, in whatever directory it has made it. Return: 0 or an error number. */
int px_place_page(struct px_trace *trace);

/* px_place_register - make the stream, and give it a slot. The registry is locked. Return: 0 or an error number. */
int px_place_register(struct px_trace *trace, struct px_registry *registry);

/* px_place_enter - have the process record in the stream from now on. px_place_leave - no longer. */
void px_place_enter(struct px_trace *trace);
void px_place_leave(struct px_trace *trace);

/* px_place_withdraw - take the stream away from where others find it. The registry is locked. */
void px_place_withdraw(struct px_trace *trace, struct px_registry *registry);

#endif
