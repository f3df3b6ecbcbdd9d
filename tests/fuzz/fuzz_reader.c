/* SPDX-License-Identifier: MIT */
/* fuzz_reader.c - native/reader under libFuzzer: its functions stay correct with any bytes in the files of a trace. */
/*
 * The first four bytes of an input are parameters: repair of checksums, the coding and its damage, numbers of files and streams,
 * and the cut. The other bytes are the contents of the stream files. The fuzzer makes names and text in all formats, seeks a place
 * in the middle, and copies the events and reads the copy. A copy has as many events as the copier returns. A compact copy of the
 * files becomes the plain copy again, bit for bit.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "catalog.h"
#include "compact/compact.h"
#include "layout/crc32c.h"
#include "layout/ptt_abi.h"
#include "pttread.h"

#define BATCH 64
#define HEAD sizeof(struct ptt_packet)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);

static uint64_t column[9][BATCH];
static const struct ptt_columns columns = {
	.ts = (void *)column[0], .thread = (void *)column[1], .id = (void *)column[2], .cpu = (void *)column[3],
	.object = column[4], .site = column[5], .payload = column[6],
	.stack = (void *)column[7], .reading = (void *)column[8],
};
static char text[2 * PTT_LINE_MAX];

static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "fuzz_reader: %s\n", what);
	abort();
}

/* The plain packet at the beginning of some bytes. Return: its size, 0 if there is none. */
static size_t packet_at(const uint8_t *data, size_t size, struct ptt_packet *head)
{
	if (size < HEAD)
		return 0;
	memcpy(head, data, HEAD);
	return head->magic == PTT_CTF_MAGIC && head->packet_size / 8 >= HEAD && head->packet_size / 8 <= size ? head->packet_size / 8 : 0;
}

/* Inputs with wrong checksums end early, so most inputs get correct checksums. */
static void repair(uint8_t *data, size_t size)
{
	size_t at = 0;

	while (size - at >= HEAD) {
		struct ptt_packet head;
		size_t bytes = packet_at(data + at, size - at, &head);

		if (!bytes) {
			at += 8;
			continue;
		}
		memset(data + at + offsetof(struct ptt_packet, crc), 0, sizeof(head.crc));
		head.crc = ptt_crc32c(0, data + at, bytes);
		memcpy(data + at + offsetof(struct ptt_packet, crc), &head.crc, sizeof(head.crc));
		at += bytes;
	}
}

/* The fuzzer cannot make codes that stand for a right checksum. So plain packets get their codes here. Return: the new size */
static size_t code(uint8_t **data, size_t size)
{
	/* a packet has 144 bytes of room for each 128 bytes, or more */
	uint8_t *coded = malloc(2 * size + PTT_COMPACT_MAX(0));
	size_t at = 0, used = 0;

	must(coded, "no memory");
	while (at < size) {
		struct ptt_packet head;
		size_t bytes = packet_at(*data + at, size - at, &head);

		if (bytes && head.packet_size % 64 == 0) {
			used += ptt_compact_encode(*data + at, coded + used);
		} else {
			bytes = size - at < 8 ? size - at : 8;
			memcpy(coded + used, *data + at, bytes);
			used += bytes;
		}
		at += bytes;
	}
	free(*data);
	*data = coded;
	return used;
}

static int new_file(char path[static 32])
{
	int fd = memfd_create("stream", MFD_CLOEXEC);

	must(fd >= 0, "no memfd");
	snprintf(path, 32, "/proc/self/fd/%d", fd);
	return fd;
}

static void write_all(int fd, const uint8_t *data, size_t size)
{
	must(!size || write(fd, data, size) == (ssize_t)size, "short write");
}

/* Reads the events of some types, batch by batch. */
static void read_fields(int64_t n)
{
	static int64_t values[BATCH], offsets[BATCH + 1];
	static uint8_t valid[BATCH];

	for (int64_t i = 0; i < n; i += 16) {
		const struct ptt_event_type *type = ptt_event_type_find(columns.id[i]);

		if (!type)
			continue;

		for (unsigned int k = 0; k < type->field_count; k++) {
			ptt_field_column(&columns, n, type->fields[k].name, values, valid);
			if (type->fields[k].type == PTT_FIELD_BYTES)
				must(ptt_bytes_column(&columns, n, type->fields[k].name, offsets, text, sizeof(text)) >= 0,
				     "bytes of a field");
		}
	}
}

static void write_text(struct ptt_names *names, int64_t n, unsigned int format)
{
	struct ptt_missing_name missing[8];
	int64_t done = 0, used, found = ptt_names_missing(names, &columns, n, missing, 8);

	for (int64_t i = 0; i < found; i++)
		ptt_names_set(names, missing[i].kind, missing[i].process, missing[i].address,
			      i % 3 ? "a \"name\", of\nsorts" : "");
	for (struct ptt_columns c = columns; n > 0; n -= done) {
		used = ptt_text(names, &c, n, (int)format, text, sizeof(text), &done);
		must(used >= 0 && used <= (int64_t)sizeof(text) && done > 0, "text does not get on");
		c.ts += done, c.thread += done, c.id += done, c.cpu += done;
		c.object += done, c.site += done, c.payload += done, c.stack += done, c.reading += done;
	}
}

/* Read everything. Return: the number of events. */
static int64_t read_events(struct ptt_reader *reader, unsigned int format)
{
	struct ptt_cursor *cursor = ptt_cursor_create(reader);
	struct ptt_names *names = ptt_names_create(reader);
	struct ptt_position middle = {0}, place;
	int64_t n, total = 0, after = 0, last = INT64_MIN;
	bool in_order = true;
	uint64_t first_key, last_key;

	must(cursor && names, "no memory");
	while ((n = ptt_cursor_read(cursor, &columns, BATCH)) > 0) {
		for (int64_t i = 0; i < n; i++) {
			must(columns.thread[i] < ptt_reader_thread_count(reader), "a thread that is none");
			in_order &= columns.ts[i] >= last;
			last = columns.ts[i];
		}
		total += n;
		read_fields(n);
		write_text(names, n, format);
		if (total == n)
			ptt_cursor_position(cursor, &middle);
	}
	must(n == 0, "reading failed");
	if (total > BATCH) {
		must(!ptt_cursor_seek(cursor, &middle), "a place that was there");
		while ((n = ptt_cursor_read(cursor, &columns, BATCH)) > 0)
			after += n;
		/* a place is a time: it may name another event if times of a damaged stream go back */
		must(!in_order || after == total - BATCH, "another number of events after a seek");
	}
	if (!ptt_reader_key_range(reader, &first_key, &last_key)) {
		ptt_cursor_seek_key(cursor, first_key + (last_key - first_key) / 2);
		ptt_cursor_position(cursor, &place);
		ptt_cursor_seek_start(cursor);
		ptt_cursor_limit(cursor, &place);
		while (ptt_cursor_read(cursor, &columns, BATCH) > 0)
			;
	}
	ptt_names_destroy(names);
	ptt_cursor_destroy(cursor);
	return total;
}

static void count_events(struct ptt_reader *reader, int64_t total)
{
	static struct ptt_thread_count counts[4096];
	static struct ptt_object_count objects[256];
	static struct ptt_thread_span spans[256];
	static uint8_t ids[1024];
	struct ptt_counter *counter = ptt_counter_create(reader, 1, 1);
	int64_t n, sum = 0;
	uint64_t next = 0;

	must(counter, "no counter");
	n = ptt_counter_threads(counter, counts, 4096);
	for (int64_t i = 0; i < n && i < 4096; i++)
		sum += (int64_t)counts[i].events;
	must(n > 4096 || sum == total, "the counter counts otherwise");
	ptt_counter_objects(counter, objects, 256);
	ptt_counter_spans(counter, spans, 256);
	ptt_counter_destroy(counter);
	memset(ids, 1, sizeof(ids));
	for (int round = 0; round < 20 && next != UINT64_MAX; round++)
		if (ptt_reader_find(reader, ids, 1 << 20, &next, &columns, BATCH) < 0)
			break;
}

static void copy_stream(struct ptt_reader *reader, uint32_t stream)
{
	struct ptt_copy what = {.to_packet = UINT32_MAX,
				 .tick_mul = 1, .tick_div = 1};
	char path[32];
	int fd = new_file(path);
	int64_t copied = ptt_copy_stream(reader, stream, &what, fd), n, total = 0;
	struct ptt_reader *again = ptt_reader_create();
	struct ptt_cursor *cursor;

	ptt_reader_add_trace(again, NULL);
	ptt_reader_add_stream(again, 0);
	ptt_reader_add_file(again, 0, path);
	if (copied >= 0 && !ptt_reader_index(again, 0)) {
		/* disordered events stay disordered */
		bool good = !ptt_reader_verify(again);

		ptt_reader_set_clock(again, 0, 1000000000, 0, 0);
		cursor = ptt_cursor_create(again);
		while ((n = ptt_cursor_read(cursor, &columns, BATCH)) > 0)
			total += n;
		must(!good || total == copied, "a copy has another number of events");
		ptt_cursor_destroy(cursor);
	}
	ptt_reader_destroy(again);
	close(fd);
}

static int64_t recode_file(int from, int to, int compact)
{
	uint64_t at;

	return ptt_recode(from, to, compact, &at);
}

/* A file without damage has a plain and a compact copy, and the compact copy has the same plain copy. */
static void recode(int fd)
{
	char path[32];
	int plain = new_file(path), compact = new_file(path), back = new_file(path);
	int64_t size = recode_file(fd, plain, 0);

	must((recode_file(fd, compact, 1) < 0) == (size < 0), "a file has a copy in one coding only");
	if (size > 0) {
		uint8_t *bytes = malloc(2 * (size_t)size);

		must(bytes && recode_file(compact, back, 0) == size, "another size comes back");
		must(pread(plain, bytes, (size_t)size, 0) == size && pread(back, bytes + size, (size_t)size, 0) == size, "short read");
		must(!memcmp(bytes, bytes + size, (size_t)size), "other bytes come back");
		free(bytes);
	}
	close(plain);
	close(compact);
	close(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ptt_reader *reader;
	struct ptt_damage damage;
	uint8_t steer[4], *copy;
	char path[2][32];
	int fd[2], running;
	size_t cut;

	if (size < sizeof(steer) || size > 1 << 18)
		return 0;
	memcpy(steer, data, sizeof(steer));
	data += sizeof(steer);
	size -= sizeof(steer);
	copy = malloc(size + 1);
	memcpy(copy, data, size);
	if (steer[0] & 7)
		repair(copy, size);
	if (steer[0] & 8)
		size = code(&copy, size);
	if (steer[0] & 16 && size >= 2)
		copy[(copy[size - 1] << 8 | copy[size - 2]) % size] ^= (uint8_t)(steer[0] >> 5 | 8);
	fd[0] = new_file(path[0]);
	fd[1] = new_file(path[1]);
	cut = size * steer[1] / 256 & ~(size_t)7;
	running = steer[2] & 1;

	reader = ptt_reader_create();
	ptt_reader_add_trace(reader, NULL);
	ptt_reader_add_process(reader, 0, 0, 1000);
	ptt_reader_set_site(reader, 0, 1, 0x400000);
	ptt_reader_add_stream(reader, 0);
	ptt_reader_add_file(reader, 0, path[0]);
	if (steer[2] & 2)
		ptt_reader_add_stream(reader, 0);
	ptt_reader_add_file(reader, steer[2] & 2 ? 1 : 0, path[1]);
	write_all(fd[0], copy, cut);
	if (running)
		ptt_reader_index(reader, 1);
	write_all(steer[2] & 4 ? fd[0] : fd[1], copy + cut, size - cut);
	ptt_reader_index(reader, 0);
	ptt_reader_set_clock(reader, 0, steer[3] & 1 ? 1000000000 : 2893202000, 12345, steer[3]);
	ptt_reader_key_ticks(reader, steer[3] & 2);
	if (steer[3] & 4)
		ptt_reader_verify(reader);
	count_events(reader, read_events(reader, steer[3] >> 3 & 3));
	for (uint32_t i = 0; i < ptt_reader_stream_count(reader); i++)
		copy_stream(reader, i);
	for (uint32_t i = 0; i < ptt_reader_damage_count(reader); i++)
		ptt_reader_damage(reader, i, &damage);
	ptt_reader_destroy(reader);
	for (int i = 0; i < 2; i++) {
		recode(fd[i]);
		close(fd[i]);
	}
	free(copy);
	return 0;
}
