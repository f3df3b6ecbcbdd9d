/* SPDX-License-Identifier: MIT */
/* shared_writers.c - lays out, maps and frees the shared buffer; finds its writers, and which writers are dead. */
#include "drain_shared.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mapping/segment_map.h"
#include "mapping/truncation.h"

/* ------------------------------------------------------------ the buffer */


void shared_lay_out(struct ptt_segment *segment, struct ptt_shared *shared, uint64_t size)
{
	uint64_t at = align_up(segment->size, 64), words = PTT_SHARED_SIZE_MIN / 4;

	while (words * 4 < size)
		words *= 2;
	segment->shared_offset = at;
	at += sizeof(*shared);
	shared->process_offset = at;
	at += (uint64_t)segment->process_count * sizeof(struct ptt_shared_process);
	shared->array_offset = align_up(at, PTT_SHARED_ALIGN);
	shared->size = words;
	shared->headroom = words / 16 < 16384 ? words / 16 : 16384;
	segment->size = shared->array_offset + words * 4;
}

bool shared_is_sound(const struct ptt_segment *segment, const char *base)
{
	struct ptt_shared shared;
	uint64_t size = segment->size;

	if (!segment->shared_offset)
		return true;
	if (segment->shared_offset % 64 || segment->shared_offset > size - sizeof(shared) || !segment->thread_count)
		return false;
	memcpy(&shared, base + segment->shared_offset, sizeof(shared));
	return shared.size * 4 >= PTT_SHARED_SIZE_MIN && shared.size * 4 <= PTT_SHARED_SIZE_MAX &&
	       !(shared.size & (shared.size - 1)) && shared.array_offset % PTT_SHARED_ALIGN == 0 &&
	       shared.array_offset <= size && shared.size * 4 <= size - shared.array_offset &&
	       shared.process_offset <= size &&
	       segment->process_count * sizeof(struct ptt_shared_process) <= size - shared.process_offset &&
	       shared.beg_read <= shared.reserved && shared.reserved - shared.beg_read <= shared.size &&
	       shared.written <= shared.reserved;
}

int shared_open(struct ptt_collector *c, const char *path, struct ptt_message *message)
{
	struct shared_drain *d = calloc(1, sizeof(*d));
	int fd;

	c->shared = d;
	if (!d)
		return fail(message, -ENOMEM, "cannot start the collector");
	d->shared = (void *)(c->base + c->head.shared_offset);
	d->head = *d->shared;
	c->shared_process = (void *)(c->base + d->head.process_offset);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return fail(message, -errno, "%s", path);
	d->array = ptt_mirror_map(fd, d->head.array_offset, d->head.size * 4);
	close(fd);
	if (!d->array)
		return fail(message, -errno, "cannot map the shared buffer");
	d->guard = ptt_guard_add(d->array, 2 * d->head.size * 4);
	return d->guard ? 0 : fail(message, -ENOMEM, "cannot map the shared buffer");
}

void shared_take_up(struct ptt_collector *c)
{
	struct ptt_shared *shared = c->shared->shared;
	const struct stream *s = &c->stream[0];
	uint64_t at = shared->beg_read;

	/* The last reader may have died while writers waited for it: let them go on before our first pass. */
	if (__atomic_load_n(&shared->pause, __ATOMIC_RELAXED)) {
		__atomic_store_n(&shared->pause, 0, __ATOMIC_RELEASE);
		syscall(SYS_futex, &shared->pause, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	}
	/* The last packet may be on disk, although its words were not given back: give them back now. */
	if (!s->used || s->chunk_serial <= at || s->chunk_serial > shared->reserved ||
	    s->chunk_serial - at > c->shared->head.size)
		return;
	memset(c->shared->array + (at & (c->shared->head.size - 1)), 0, (size_t)(s->chunk_serial - at) * 4);
	__atomic_store_n(&shared->beg_read, s->chunk_serial, __ATOMIC_RELEASE);
}

void shared_close(struct ptt_collector *c)
{
	/* seq_cst: before wake_writers() changes space; writers load fini relaxed each time before they write or wait */
	__atomic_store_n(&c->shared->shared->fini, 1, __ATOMIC_SEQ_CST);
}

void shared_destroy(struct ptt_collector *c)
{
	struct shared_drain *d = c->shared;

	if (!d)
		return;
	ptt_guard_remove(d->guard);
	if (d->array)
		ptt_mirror_unmap(d->array, d->head.size * 4);
	free(d->thread);
	free(d);
}

/* ------------------------------------------------------------ writers */

#define STAT_MAX 1024

/* Read a file stat of /proc. Return: the end of the name, before the other fields; NULL if there is no such task. */
static char *read_stat(const char *path, char text[STAT_MAX])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return NULL;
	n = read(fd, text, STAT_MAX - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return strrchr(text, ')');
}

/* The start time of process @pid (field 22 of its stat), as the process itself stores it; 0 if there is no such process. */
static uint64_t start_time_of(uint32_t pid)
{
	char path[32], text[STAT_MAX], *at;
	int field;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	at = read_stat(path, text);
	for (field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

/* Have all threads of the process ended? Its parent may not have waited for it yet. */
static bool has_ended(uint32_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	bool ended;

	if (fd < 0)
		return errno == ESRCH;
	ended = poll(&poll_fd, 1, 0) > 0;
	close(fd);
	return ended;
}

/* Has the process of entry @index executed another program since? The new image has its own entry. */
static bool has_other_image(const struct ptt_collector *c, uint32_t index)
{
	for (uint32_t i = 0; i < process_high(c); i++) {
		if (i != index && c->process[i].pid == c->process[index].pid &&
		    c->process[i].pid_namespace == c->process[index].pid_namespace &&
		    c->process[i].image > c->process[index].image &&
		    c->shared_process[i].start_time == c->shared_process[index].start_time)
			return true;
	}
	return false;
}

static bool lives(struct ptt_collector *c, uint32_t index)
{
	struct ptt_shared_process *p = &c->shared_process[index];
	uint32_t pid = p->gone ? 0 : ptt_collector_process_pid(c, index);
	/* the pid may belong to another process by now; if /proc does not show this, we take it for the same process */
	uint64_t started = pid ? start_time_of(pid) : 0;
	bool other = started && p->start_time && started != p->start_time;

	if (!p->gone && (!pid || has_ended(pid) || other || has_other_image(c, index)))
		p->gone = 1;
	return !p->gone;
}

bool shared_any_writer_lives(struct ptt_collector *c)
{
	for (uint32_t i = 0; i < process_high(c); i++) {
		/* seq_cst: pairs with the writer's increment before it reserves */
		if (__atomic_load_n(&c->shared_process[i].writing, __ATOMIC_SEQ_CST) && lives(c, i))
			return true;
	}
	return false;
}

static bool has_running_thread(uint32_t pid)
{
	char path[300], text[STAT_MAX], *at;
	struct dirent *task;
	bool runs = false;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	tasks = opendir(path);
	while (tasks && !runs && (task = readdir(tasks))) {
		snprintf(path, sizeof(path), "/proc/%u/task/%s/stat", pid, task->d_name);
		at = task->d_name[0] == '.' ? NULL : read_stat(path, text);
		runs = at && (strncmp(at, ") R", 3) == 0 || strncmp(at, ") D", 3) == 0);
	}
	if (tasks)
		closedir(tasks);
	return runs;
}

bool shared_any_writer_runs(struct ptt_collector *c)
{
	for (uint32_t i = 0; i < process_high(c); i++) {
		/* relaxed: we do not wait for a writer that has begun only now */
		if (__atomic_load_n(&c->shared_process[i].writing, __ATOMIC_RELAXED) && lives(c, i) &&
		    has_running_thread(ptt_collector_process_pid(c, i)))
			return true;
	}
	return false;
}

/* ------------------------------------------------------------ notes */

static struct shared_thread *find(struct shared_thread *table, uint64_t room, uint64_t key)
{
	uint64_t at = (key * UINT64_C(0x9E3779B97F4A7C15)) >> 32;

	for (;; at++) {
		struct shared_thread *entry = &table[at & (room - 1)];

		if (!entry->key || entry->key == key)
			return entry;
	}
}

static bool make_room(struct shared_drain *d)
{
	uint64_t room = d->thread_room ? 2 * d->thread_room : 256;
	struct shared_thread *table = calloc(room, sizeof(*table));

	if (!table)
		return false;
	for (uint64_t i = 0; i < d->thread_room; i++)
		if (d->thread[i].key)
			*find(table, room, d->thread[i].key) = d->thread[i];
	free(d->thread);
	d->thread = table;
	d->thread_room = room;
	return true;
}

/* The last process image with that pid. */
static uint32_t process_of(const struct ptt_collector *c, uint32_t pid)
{
	uint32_t image = PTT_NO_IMAGE;

	for (uint32_t i = 0; i < process_high(c); i++) {
		if (c->process[i].pid == pid && (image == PTT_NO_IMAGE || c->process[i].image > image))
			image = c->process[i].image;
	}
	return image;
}

void shared_note_thread(struct ptt_collector *c, uint32_t pid, uint32_t tid)
{
	struct shared_drain *d = c->shared;
	uint64_t key = (uint64_t)pid << 32 | tid;
	struct shared_thread *entry;

	if (key == d->last_thread || !key)
		return;
	d->last_thread = key;
	if (2 * (d->thread_count + 1) > d->thread_room && !make_room(d))
		return; /* without memory, the thread has no name, and the last line counts too few threads */
	entry = find(d->thread, d->thread_room, key);
	if (entry->key)
		return;
	*entry = (struct shared_thread){key, process_of(c, pid), 0};
	d->thread_count++;
}

int shared_threads(const struct ptt_collector *c, struct ptt_collector_thread *threads, uint32_t count)
{
	const struct shared_drain *d = c->shared;
	uint32_t n = 0;

	for (uint64_t i = 0; i < d->thread_room && n < count; i++) {
		const struct shared_thread *t = &d->thread[i];

		if (t->key)
			threads[n++] = (struct ptt_collector_thread){
				.pid = (uint32_t)(t->key >> 32), .tid = (uint32_t)t->key, .process = t->process};
	}
	return (int)n;
}

void shared_note_fault(struct ptt_collector *c, const struct ptt_collector_fault *fault)
{
	struct shared_drain *d = c->shared;

	if (d->faults < FAULTS_KEPT)
		d->fault[d->faults] = *fault;
	d->faults++;
}

uint64_t ptt_collector_faults(const struct ptt_collector *c, struct ptt_collector_fault *faults, uint32_t count)
{
	const struct shared_drain *d = c->shared;

	if (!d)
		return 0;
	for (uint32_t i = 0; i < count && i < FAULTS_KEPT && i < d->faults; i++)
		faults[i] = d->fault[i];
	return d->faults;
}
