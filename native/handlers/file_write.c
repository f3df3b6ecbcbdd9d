/* SPDX-License-Identifier: MIT */
/* file_write.c - the file handler's trace directory: its name and its packets. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "layout/crc32c.h"
#include "nptl_trace_events.h"
#include "put.h"
#include "record/record.h"

#define ID_THREAD_BEGIN (NPTL_DOMAIN_THREAD << 6 | NPTL_EV_THREAD_BEGIN)
#define PACKET_MAX (1024u * 1024u)
#define STREAM "stream-file"
/* A file that marks a directory without its trace yet. */
#define CLAIM ".claimed"

/* ------------------------------------------------------------ the directory */

/* Make @path ours. Return: 0; -EEXIST if it belongs to somebody else; another -errno. */
static int try_claim(const char *path)
{
	struct stat st;
	int dir, fd;
	int err;

	if (mkdir(path, 0777) < 0 && errno != EEXIST)
		return -errno;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return errno == ENOTDIR || errno == EACCES ? -EEXIST : -errno;
	/* Another user may put files there that we would write to. */
	if (fstat(dir, &st) < 0 || st.st_uid != geteuid() || faccessat(dir, "metadata", F_OK, 0) == 0) {
		close(dir);
		return -EEXIST;
	}
	fd = openat(dir, CLAIM, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	err = fd < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	close(dir);
	return err;
}

/* Append "-<pid>" and, from the second attempt on, ".<n>". */
static void name_attempt(char *name, size_t size, const struct file_buffer *buffer, unsigned int attempt)
{
	struct put put = {.text = name, .room = size - 1, .fd = -1};

	put_string(&put, buffer->path);
	if (attempt) {
		put_string(&put, "-");
		put_decimal(&put, buffer->pid, 1);
	}
	if (attempt > 1) {
		put_string(&put, ".");
		put_decimal(&put, attempt, 1);
	}
	name[put.size] = '\0';
}

int file_claim(struct file_buffer *buffer)
{
	char name[PATH_MAX];
	unsigned int attempt;
	int err = -EEXIST;

	for (attempt = buffer->forked; err == -EEXIST && attempt < 1000; attempt++) {
		name_attempt(name, sizeof(name), buffer, attempt);
		err = try_claim(name);
	}
	if (err)
		return err;
	memcpy(buffer->path, name, sizeof(name));
	buffer->claimed = true;
	return 0;
}

/* ------------------------------------------------------------ packets */

/* The state of a record. Waits a moment for a thread that is still writing the record. */
static enum ptt_record_state look_at_record(const struct file_buffer *buffer, uint64_t at, uint64_t end, uint32_t *length)
{
	static const struct timespec nap = {.tv_nsec = 1000000};
	enum ptt_record_state state;
	int i;

	for (i = 0; i < 50; i++) {
		state = ptt_record_look(buffer->array + at, end - at, length);
		if (state != PTT_RECORD_EMPTY && state != PTT_RECORD_HOLE)
			break;
		nanosleep(&nap, NULL);
	}
	return state;
}

static int write_packet(const struct file_buffer *buffer, int fd, uint64_t begin, uint64_t end, struct ptt_packet *head)
{
	const char *data = (const char *)(buffer->array + begin);
	size_t size = (size_t)(end - begin) * 4, padding = -size % 8;
	const uint64_t zero = 0;
	int err;

	head->magic = PTT_CTF_MAGIC;
	memcpy(head->uuid, buffer->identity.uuid, sizeof(head->uuid));
	head->stream_id = PTT_STREAM_RECORDS;
	head->content_size = (sizeof(*head) + size) * 8;
	head->packet_size = (sizeof(*head) + size + padding) * 8;
	head->crc = 0;
	head->crc = ptt_crc32c(ptt_crc32c(ptt_crc32c(0, head, sizeof(*head)), data, size), &zero, padding);
	err = put_write_all(fd, head, sizeof(*head));
	if (!err)
		err = put_write_all(fd, data, size);
	if (!err)
		err = put_write_all(fd, &zero, padding);
	head->packet_seq_num++;
	head->event_count = 0;
	return err;
}

/* Put all records into packets. Return: 0 or -errno. */
static int write_packets(const struct file_buffer *buffer, int fd, struct file_counts *counts)
{
	/* acquire: pairs with the swap of reserve(); ptt_record_look() pairs with the release of each record */
	uint64_t at = 0, begin = 0, end = __atomic_load_n(&buffer->reserved, __ATOMIC_ACQUIRE), last = 0;
	struct ptt_packet head = {.process = 0, .pid = buffer->pid};
	uint32_t length = 0;
	int err = 0;

	while (at < end && !err) {
		bool good = look_at_record(buffer, at, end, &length) == PTT_RECORD_GOOD;
		uint64_t next = at + length;

		if (good) {
			last = ptt_record_get64(buffer->array + at + 1);
			if (!head.event_count)
				head.timestamp_begin = last;
			head.timestamp_end = last;
			head.event_count++;
			counts->events++;
			counts->threads += (buffer->array[at] & 0xffff) == ID_THREAD_BEGIN;
		} else {
			counts->lost++;
			next = at + ptt_record_resync(buffer->array + at, end - at, last);
		}
		head.events_discarded = counts->lost;
		if (next >= end)
			head.events_discarded += __atomic_load_n(&buffer->dropped, __ATOMIC_RELAXED);
		if (head.event_count && (!good || next >= end || (next - begin) * 4 > PACKET_MAX)) {
			err = write_packet(buffer, fd, begin, good ? next : at, &head);
			begin = next;
		} else if (!good) {
			begin = next;
		}
		at = next;
	}
	counts->bytes = (uint64_t)lseek(fd, 0, SEEK_CUR);
	return err;
}

static int write_stream(const struct file_buffer *buffer, int dir)
{
	struct file_counts counts = {.threads = 1};
	int fd = openat(dir, STREAM, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
	int err;

	if (fd < 0)
		return -errno;
	err = write_packets(buffer, fd, &counts);
	close(fd);
	return err ? err : file_put_info(dir, buffer, &counts);
}

int file_write(struct file_buffer *buffer)
{
	/* seq_cst: before the end is read in write_packets(); the partner is the swap of reserve() */
	uint32_t before = __atomic_exchange_n(&buffer->stopped, STOPPED_TO_WRITE, __ATOMIC_SEQ_CST);
	int dir, err = buffer->claimed ? 0 : file_claim(buffer);

	if (err)
		return err;
	dir = open(buffer->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	err = write_stream(buffer, dir);
	if (!err)
		err = put_record_metadata(dir, "file", &buffer->identity); /* last: the metadata makes the directory a trace */
	if (!err)
		unlinkat(dir, CLAIM, 0);
	close(dir);
	__atomic_store_n(&buffer->stopped, before, __ATOMIC_SEQ_CST);
	return err;
}
