/* SPDX-License-Identifier: MIT */
/* recover.c - takes over the stream files of a recorder that was killed: keeps whole packets, and cuts off a torn end. */
/*
 * Packets are written one after the other, so only the last packet of a file can be torn. The last whole packet names its last
 * chunk and the end in the chunk. Draining continues there, so each event is on disk exactly once.
 */
#include "collector.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compact/compact.h"
#include "layout/packet_crc.h"

struct file {
	uint32_t index;
	uint32_t generation;
};

static int by_index_and_generation(const void *a, const void *b)
{
	const struct file *x = a, *y = b;

	if (x->index != y->index)
		return x->index < y->index ? -1 : 1;
	return x->generation < y->generation ? -1 : x->generation > y->generation;
}

/* Return: number of stream files, or -errno. The caller frees @files. */
static int list_files(struct ptt_collector *c, struct file **files)
{
	int fd = openat(c->trace_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	size_t room = 0;
	int n = 0;

	*files = NULL;
	if (!directory) {
		n = -errno;
		if (fd >= 0)
			close(fd);
		return n;
	}
	while ((entry = readdir(directory))) {
		struct file file = {0}, *more;
		char expected[32];

		if (c->shared)
			sscanf(entry->d_name, "stream-shared.%9u", &file.generation);
		else if (sscanf(entry->d_name, "stream-%5u.%9u", &file.index, &file.generation) < 1)
			continue;
		stream_name(c, file.index, file.generation, expected);
		if (strcmp(expected, entry->d_name) != 0 || file.index >= c->head.thread_count)
			continue;
		more = with_room(*files, (size_t)n, &room, sizeof(*more));
		if (!more) {
			closedir(directory);
			return -ENOMEM;
		}
		*files = more;
		(*files)[n++] = file;
	}
	closedir(directory);
	if (n)
		qsort(*files, (size_t)n, sizeof(**files), by_index_and_generation);
	return n;
}

/*
 * Read the head of the packet at @at.
 * @size: set to its bytes in the file
 */
static bool read_head(const struct ptt_collector *c, int fd, uint64_t at, uint64_t file_size, struct ptt_packet *head, uint64_t *size)
{
	char begin[sizeof(struct ptt_coded)];
	ssize_t got = pread(fd, begin, sizeof(begin), (off_t)at);
	struct ptt_coded coded;

	if (got == (ssize_t)sizeof(begin) && ptt_coded_read(begin, file_size - at, &coded)) {
		*head = coded.head;
		*size = coded.prefix.size;
	} else if (got >= (ssize_t)sizeof(*head)) {
		memcpy(head, begin, sizeof(*head));
		*size = head->packet_size / 8;
	} else {
		return false;
	}
	return head->magic == PTT_CTF_MAGIC && memcmp(head->uuid, c->head.uuid, sizeof(head->uuid)) == 0 &&
	       head->packet_size >= sizeof(*head) * 8 && *size <= file_size - at && head->packet_size / 8 <= PACKET_SIZE_MAX &&
	       head->packet_size % (8 * PTT_SLOT_SIZE) == 0;
}

/* Does the packet of @size bytes at @at agree with its CRC? */
static bool is_whole(int fd, uint64_t at, const struct ptt_packet *head, uint64_t size)
{
	size_t plain_size = head->packet_size / 8;
	char *data = malloc(size), *plain = malloc(plain_size);
	struct ptt_coded coded;
	bool whole = data && plain && pread(fd, data, size, (off_t)at) == (ssize_t)size;

	if (whole && ptt_coded_read(data, size, &coded))
		whole = coded.head.packet_size / 8 == plain_size && ptt_coded_unpack(&coded, data, plain);
	else if (whole && size == plain_size)
		memcpy(plain, data, plain_size);
	else
		whole = false;
	whole = whole && ptt_packet_crc_is_right(plain, plain_size);
	free(data);
	free(plain);
	return whole;
}

static void count_packet(struct ptt_collector *c, struct stream *s, const struct ptt_packet *head)
{
	c->stats.packets++;
	c->stats.events += head->event_count;
	if (!head->event_count)
		return;
	if (!s->tid || s->thread_serial != head->thread_serial)
		c->stats.threads++;
	s->thread_serial = head->thread_serial;
	s->pid = head->pid;
	s->tid = head->tid;
	s->process = head->process;
}

/* Continue the stream after its last whole packet. */
static void continue_after(struct stream *s, const struct ptt_packet *last)
{
	s->sequence = last->packet_seq_num + 1;
	s->chunk_serial = last->chunk_serial;
	s->chunk_end = last->chunk_end;
	s->discarded = last->events_discarded;
	s->discarded_base = last->discarded_before;
	s->time_end = last->timestamp_end;
	s->last_serial = last->thread_serial;
}

/* Walk over the packets of a file, and cut off a torn end. */
static int recover_file(struct ptt_collector *c, const struct file *file, int fd)
{
	struct stream *s = &c->stream[file->index];
	struct ptt_packet head, last;
	uint64_t at = 0, size, coded, events = c->stats.events;
	bool any = false;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	/* A file with a second name may belong to somebody else: do not cut it. */
	if (!S_ISREG(st.st_mode) || st.st_nlink > 1)
		return -EINVAL;
	size = (uint64_t)st.st_size;
	while (at < size && read_head(c, fd, at, size, &head, &coded)) {
		if (at + coded == size && !is_whole(fd, at, &head, coded))
			break;
		count_packet(c, s, &head);
		last = head;
		any = true;
		at += coded;
	}
	if (at < size && ftruncate(fd, (off_t)at) < 0)
		return -errno;
	c->stats.bytes += at;
	if (any)
		continue_after(s, &last);
	s->used = 1;
	s->generation = file->generation;
	s->file_size = at;
	if (c->max_files && c->max_file_size) {
		if (!s->generation_events)
			s->generation_events = calloc(c->max_files, sizeof(uint64_t));
		if (s->generation_events)
			s->generation_events[file->generation % c->max_files] = c->stats.events - events;
	}
	return 0;
}

int recover_streams(struct ptt_collector *c, struct ptt_message *message)
{
	struct file *files;
	int n = list_files(c, &files), err = n < 0 ? n : 0;
	uint32_t s;

	for (int i = 0; i < n && !err; i++) {
		char name[32];
		int fd;

		stream_name(c, files[i].index, files[i].generation, name);
		fd = openat(c->trace_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		err = fd < 0 ? -errno : recover_file(c, &files[i], fd);
		if (fd >= 0)
			close(fd);
		if (err)
			fail(message, err, "%s", name);
	}
	if (n < 0)
		fail(message, n, "cannot list the trace directory");
	free(files);
	for (s = 0; s < c->head.thread_count; s++)
		c->stream[s].checked = 1;
	if (!err && !c->shared)
		threads_take_up(c);
	return err;
}
