/* SPDX-License-Identifier: MIT */
/* stream_file.c - stream files: names, rotation, a bounded number of open files, whole packets or nothing. */
#include "../collector.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPEN_FILES_MAX 16384u

void stream_name(const struct ptt_collector *c, uint32_t index, uint32_t generation, char name[static 32])
{
	if (c->shared && c->max_file_size)
		snprintf(name, 32, "stream-shared.%03u", generation);
	else if (c->shared)
		snprintf(name, 32, "stream-shared");
	else if (c->max_file_size)
		snprintf(name, 32, "stream-%05u.%03u", index, generation);
	else
		snprintf(name, 32, "stream-%05u", index);
}

int streams_init(struct ptt_collector *c, struct ptt_message *message)
{
	struct rlimit limit = {.rlim_cur = 1024}, raised;

	getrlimit(RLIMIT_NOFILE, &limit);
	/* Each thread has a file. To open a file for each packet takes longer than to write the packet. */
	raised = limit;
	raised.rlim_cur = limit.rlim_max < 2 * OPEN_FILES_MAX ? limit.rlim_max : 2 * OPEN_FILES_MAX;
	if (raised.rlim_cur > limit.rlim_cur && setrlimit(RLIMIT_NOFILE, &raised) == 0)
		limit = raised;
	c->open_count = OPEN_FILES_MAX;
	/* Leave half of the descriptors to the rest of the process. */
	if (limit.rlim_cur / 2 < c->open_count)
		c->open_count = limit.rlim_cur / 2 > 4 ? (uint32_t)(limit.rlim_cur / 2) : 4;
	c->open = calloc(c->open_count, sizeof(*c->open));
	if (!c->open)
		return fail(message, -ENOMEM, "cannot allocate the table of open files");
	return 0;
}

static void close_file(struct ptt_collector *c, uint32_t slot)
{
	struct open_file *file = &c->open[slot];

	if (!file->open)
		return;
	close(file->fd);
	file->open = false;
	c->stream[file->stream].open = 0;
}

void streams_close(struct ptt_collector *c)
{
	for (uint32_t i = 0; c->open && i < c->open_count; i++)
		close_file(c, i);
}

void streams_free(struct ptt_collector *c, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		free(c->stream[i].generation_events);
	free(c->stream);
}

/* A free slot in the table of open files: the next slot that was not used since the hand last passed (the clock algorithm). */
static uint32_t free_slot(struct ptt_collector *c)
{
	struct open_file *file;
	uint32_t slot;

	for (;;) {
		slot = c->open_hand;
		file = &c->open[slot];
		c->open_hand = slot + 1 < c->open_count ? slot + 1 : 0;
		if (!file->open)
			return slot;
		if (!file->used)
			break;
		file->used = false;
	}
	close_file(c, slot);
	return slot;
}

/* Return: descriptor of the stream's current file, or -errno. */
static int stream_fd(struct ptt_collector *c, uint32_t index)
{
	struct stream *s = &c->stream[index];
	char name[32];
	uint32_t slot;
	int fd;

	if (s->open) {
		c->open[s->open - 1].used = true;
		return c->open[s->open - 1].fd;
	}
	slot = free_slot(c);
	stream_name(c, index, s->generation, name);
	/* Others may write into the directory: follow no link, and make a new file exclusively. */
	fd = openat(c->trace_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (s->used ? 0 : O_EXCL), 0666);
	if (fd < 0)
		return -errno;
	s->used = 1;
	s->open = slot + 1;
	c->open[slot] = (struct open_file){.fd = fd, .stream = index, .open = true, .used = true};
	return fd;
}

/* ---------------------------------------------------------------- rotation */

void streams_leave(struct ptt_collector *c, int trace_fd)
{
	streams_close(c);
	for (uint32_t i = 0; i < c->head.thread_count; i++) {
		c->stream[i].file_size = 0;
		c->stream[i].used = 0;
	}
	close(c->trace_fd);
	c->trace_fd = trace_fd;
}

static int next_generation(struct ptt_collector *c, uint32_t index)
{
	struct stream *s = &c->stream[index];
	char name[32];

	if (s->open)
		close_file(c, s->open - 1);
	s->generation++;
	s->file_size = 0;
	s->used = 0;
	if (!c->max_files || s->generation < c->max_files)
		return 0;
	stream_name(c, index, s->generation - c->max_files, name);
	if (unlinkat(c->trace_fd, name, 0) < 0 && errno != ENOENT)
		return -errno;
	if (s->generation_events) {
		uint64_t *events = &s->generation_events[s->generation % c->max_files];

		c->stats.removed += *events;
		c->stats.events -= *events;
		*events = 0;
	}
	return 0;
}

static void count_generation(struct ptt_collector *c, struct stream *s, uint32_t events)
{
	if (!c->max_files || !c->max_file_size)
		return;
	if (!s->generation_events)
		s->generation_events = calloc(c->max_files, sizeof(uint64_t));
	if (s->generation_events)
		s->generation_events[s->generation % c->max_files] += events;
}

/* ------------------------------------------------------------------ writing */

/* Write all pieces at @offset. Changes the pieces. Return: 0 or -errno. */
static int write_all(int fd, struct iovec *piece, uint32_t pieces, uint64_t offset)
{
	while (pieces) {
		ssize_t n = pwritev(fd, piece, (int)pieces, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		offset += (uint64_t)n;
		while (pieces && (size_t)n >= piece->iov_len) {
			n -= (ssize_t)piece->iov_len;
			piece++;
			pieces--;
		}
		if (pieces) {
			piece->iov_base = (char *)piece->iov_base + n;
			piece->iov_len -= (size_t)n;
		}
	}
	return 0;
}

int stream_write(struct ptt_collector *c, uint32_t index, struct iovec *piece, uint32_t pieces, uint32_t size,
		 uint32_t events)
{
	struct stream *s = &c->stream[index];
	int fd, err;

	if (c->max_file_size && s->file_size && s->file_size + size > c->max_file_size) {
		err = next_generation(c, index);
		if (err)
			return err;
	}
	fd = stream_fd(c, index);
	if (fd < 0)
		return fd;
	err = write_all(fd, piece, pieces, s->file_size);
	if (err) {
		/* Leave no torn packet. If that fails too, readers drop the packet by its CRC. */
		if (ftruncate(fd, (off_t)s->file_size) < 0)
			close_file(c, s->open - 1);
		return err;
	}
	s->file_size += size;
	count_generation(c, s, events);
	return 0;
}
