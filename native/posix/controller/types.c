/* SPDX-License-Identifier: MIT */
/* types.c - the event types of a stream or log: their names and their list. */
#include "controller.h"

static void look_for_names(struct px_trace *t)
{
	const struct px_control *control = t->control;
	/* acquire: stored after the start time */
	uint32_t pid = control ? __atomic_load_n(&control->family_pid, __ATOMIC_ACQUIRE) : 0;

	/* a process that was forked while we looked may have joined the family of its parent since */
	if (!pid || (t->names && pid == t->family_pid && control->family_start == t->family_start))
		return;
	px_names_close(t->names_before);
	t->names_before = t->names;
	t->family_pid = pid;
	t->family_start = control->family_start;
	t->names = px_names_open(&t->page_directory, t->page_user, t->control, t->pid, t->start);
}

const struct px_names *px_trace_names(struct px_trace *t)
{
	if (t->kind == PX_LOG)
		return px_log_names_of(t->opened);
	look_for_names(t);
	return t->names;
}

/* The id of @name in another process, made if there is room. Under the guard. */
static trace_event_id_t open_name(struct px_trace *t, const char *name)
{
	trace_event_id_t id = px_standard_id(name);

	if (id)
		return id;
	look_for_names(t);
	if (!t->names) {
		t->names = px_names_open(&t->page_directory, t->page_user, t->control, t->pid, t->start);
		t->family_pid = t->control->family_pid;
		t->family_start = t->control->family_start;
	}
	if (!t->names)
		return POSIX_TRACE_UNNAMED_USEREVENT;
	id = px_user_count(t->names) < TRACE_USER_EVENT_MAX - 1 ? px_names_add(t->names, name, false)
								: px_names_find(t->names, name);
	return id ? id : POSIX_TRACE_UNNAMED_USEREVENT;
}

/* ------------------------------------------------------------ the functions of <trace.h> */

int posix_trace_trid_eventid_open(trace_id_t trid, const char *restrict event_name, trace_event_id_t *restrict event)
{
	struct px_trace *t = event_name && event ? px_trace_use(trid, PX_STREAM) : NULL;
	struct px_guard guard;

	if (!t)
		return EINVAL;
	if (strnlen(event_name, TRACE_EVENT_NAME_MAX + 1) > TRACE_EVENT_NAME_MAX) {
		px_trace_done(t);
		return ENAMETOOLONG;
	}
	px_guard_enter(&guard);
	*event = t->pid == px_own_pid() ? px_open_name(event_name) : open_name(t, event_name);
	px_guard_leave(&guard);
	px_trace_done(t);
	return 0;
}

int posix_trace_eventid_get_name(trace_id_t trid, trace_event_id_t event, char *event_name)
{
	struct px_trace *t = event_name ? px_trace_use(trid, PX_STREAM | PX_LOG) : NULL;
	struct px_guard guard;
	const char *name;

	if (!t)
		return EINVAL;
	px_guard_enter(&guard);
	name = px_names_of(px_trace_names(t), event);
	if (name)
		strcpy(event_name, name);
	px_guard_leave(&guard);
	px_trace_done(t);
	return name ? 0 : EINVAL;
}

int posix_trace_eventid_equal(trace_id_t trid, trace_event_id_t event1, trace_event_id_t event2)
{
	(void)trid; /* an id means the same type in every stream of a process */
	return event1 == event2;
}

int posix_trace_eventtypelist_getnext_id(trace_id_t trid, trace_event_id_t *restrict event, int *restrict unavailable)
{
	struct px_trace *t = event && unavailable ? px_trace_use(trid, PX_STREAM | PX_LOG) : NULL;
	struct px_guard guard;
	trace_event_id_t next;

	if (!t)
		return EINVAL;
	px_guard_enter(&guard);
	next = px_names_next(px_trace_names(t), t->list_at);
	*unavailable = !next;
	if (next)
		*event = t->list_at = next;
	px_guard_leave(&guard);
	px_trace_done(t);
	return 0;
}

int posix_trace_eventtypelist_rewind(trace_id_t trid)
{
	struct px_trace *t = px_trace_use(trid, PX_STREAM | PX_LOG);
	struct px_guard guard;

	if (!t)
		return EINVAL;
	px_guard_enter(&guard);
	t->list_at = 0;
	px_guard_leave(&guard);
	px_trace_done(t);
	return 0;
}
