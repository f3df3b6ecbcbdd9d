/* SPDX-License-Identifier: MIT */
/* log_whole.c - logs of controllers that died: read when their heirs (heir.c) have written the rest. */
#include "buffer.h"
#include "log.h"
#include "meet.h"
#include "platform/raw_syscall.h"

#define HEIR_WAIT_NS UINT64_C(30000000000)

static const struct timespec moment = {.tv_nsec = 1000000};

/* Does the controller still hold the stream of this log? True if that cannot be found out. */
static bool is_held(const struct px_log_status *status)
{
	struct px_path directory, path;

	if (px_directory(&directory, status->user, false) < 0)
		return true;
	px_path_add(&path, &directory, 's', status->serial, 0);
	return px_is_held(&path);
}

int px_log_read_whole(struct px_log_reader **reader, int fd)
{
	uint64_t since = px_now();
	struct px_log_status status;
	int err = px_log_read(reader, fd);

	if (err)
		return err;
	status = *px_log_status_of(*reader);
	if (status.final || !status.heir_pid || is_held(&status))
		return 0;
	while (px_process_lives(status.heir_pid, status.heir_start) && px_now() - since < HEIR_WAIT_NS)
		ptt_raw_syscall(SYS_nanosleep, (long)&moment, 0, 0, 0, 0, 0);
	/* also if it had ended before we looked for it: that may have been after we read */
	px_log_read_end(*reader);
	return px_log_read(reader, fd);
}
