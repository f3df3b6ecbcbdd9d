/* SPDX-License-Identifier: MIT */
/* put.h - text put together without stdio, and the metadata of a trace of classic records that no recorder has written. */
/* All functions are safe in signal handlers, keep errno and allocate nothing. */
#ifndef PTT_PUT_H
#define PTT_PUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Text in the making. With a file it is written out whenever it is full; without one it is cut off at its end. */
struct put {
	char *text;
	size_t room;
	size_t size;
	int fd;    /* -1 = none */
	int error; /* first that writing met, positive, or 0 */
};

void put_text(struct put *put, const char *text, size_t size) __attribute__((visibility("hidden")));
void put_string(struct put *put, const char *text) __attribute__((visibility("hidden")));
void put_decimal(struct put *put, uint64_t value, unsigned int digits) __attribute__((visibility("hidden")));
void put_signed(struct put *put, int64_t value) __attribute__((visibility("hidden")));
void put_hex(struct put *put, uint64_t value) __attribute__((visibility("hidden")));

/* put_json - a string in quotes. Bytes that are no UTF-8 stay as they are; readers replace them. */
void put_json(struct put *put, const char *text, size_t size) __attribute__((visibility("hidden")));

/* put_json_number, put_json_string - one more member of an object, on a line of its own. */
void put_json_number(struct put *put, const char *name, uint64_t value) __attribute__((visibility("hidden")));
void put_json_string(struct put *put, const char *name, const char *value) __attribute__((visibility("hidden")));

/* put_uuid - 16 bytes in the common form. */
void put_uuid(struct put *put, const uint8_t *uuid) __attribute__((visibility("hidden")));

/* put_open, put_close - text for a new file in the directory @dir. Return: 0 or -errno; put_close returns the error of any failure. */
int put_open(struct put *put, int dir, const char *name, char *room, size_t size) __attribute__((visibility("hidden")));
int put_close(struct put *put) __attribute__((visibility("hidden")));

/* put_flush - write out the buffered text. Return: 0 or -errno of the first failure. */
int put_flush(struct put *put) __attribute__((visibility("hidden")));

/* put_write_all - write, whatever it takes, without errno and cancellation. Return: 0 or -errno. */
int put_write_all(int fd, const void *data, size_t size) __attribute__((visibility("hidden")));

/* Which trace it is, and when it began by two clocks. */
struct put_identity {
	uint8_t uuid[16];
	int64_t start_unix_ns;
	uint64_t start_clock;
};

/* put_record_metadata - the TSDL text, in the directory @dir; @handler is named in it. Return: 0 or -errno. */
int put_record_metadata(int dir, const char *handler, const struct put_identity *identity)
	__attribute__((visibility("hidden")));

#endif
