/* SPDX-License-Identifier: MIT */
/* trace_names.c - finds the names of the process that a stream traces, wherever its family keeps them. */
#include "trace_names.h"

static void look_for_names(struct px_trace *t)
{
	const struct px_control *control = t->control;
	/* acquire: stored after the start time */
	uint32_t pid = control ? __atomic_load_n(&control->family_pid, __ATOMIC_ACQUIRE) : 0;

	/* a process that was forked while we looked may have taken its parent's family instead of one of its own */
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

trace_event_id_t px_trace_open_name(struct px_trace *t, const char *name)
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
