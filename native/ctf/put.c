/* SPDX-License-Identifier: MIT */
/* put.c - puts text together without stdio. */
#include "put.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "platform/raw_syscall.h"

int put_write_all(int fd, const void *data, size_t size)
{
	const char *at = data;

	while (size) {
		long n = ptt_raw_syscall(SYS_write, fd, (long)at, (long)size, 0, 0, 0);

		if (n == -EINTR)
			continue;
		if (n <= 0)
			return n ? (int)n : -EIO;
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

int put_flush(struct put *put)
{
	if (put->fd >= 0 && put->size && !put->error)
		put->error = -put_write_all(put->fd, put->text, put->size);
	if (put->fd >= 0)
		put->size = 0;
	return -put->error;
}

void put_text(struct put *put, const char *text, size_t size)
{
	while (size) {
		size_t part = put->room - put->size < size ? put->room - put->size : size;

		memcpy(put->text + put->size, text, part);
		put->size += part;
		text += part;
		size -= part;
		if (!size || put->fd < 0)
			return;
		put_flush(put);
	}
}

void put_string(struct put *put, const char *text)
{
	put_text(put, text, strlen(text));
}

void put_decimal(struct put *put, uint64_t value, unsigned int digits)
{
	char text[24];
	unsigned int n = 0;

	do {
		text[sizeof(text) - ++n] = (char)('0' + value % 10);
		value /= 10;
	} while (value || n < digits);
	put_text(put, text + sizeof(text) - n, n);
}

void put_signed(struct put *put, int64_t value)
{
	if (value < 0)
		put_text(put, "-", 1);
	put_decimal(put, value < 0 ? -(uint64_t)value : (uint64_t)value, 1);
}

void put_hex(struct put *put, uint64_t value)
{
	int shift = 60;

	put_text(put, "0x", 2);
	while (shift && !(value >> shift))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		put_text(put, &"0123456789abcdef"[value >> shift & 15], 1);
}

void put_json(struct put *put, const char *text, size_t size)
{
	put_text(put, "\"", 1);
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '"' || c == '\\') {
			put_text(put, "\\", 1);
			put_text(put, &text[i], 1);
		} else if (c < 0x20) {
			put_text(put, "\\u00", 4);
			put_text(put, &"0123456789abcdef"[c >> 4], 1);
			put_text(put, &"0123456789abcdef"[c & 15], 1);
		} else {
			put_text(put, &text[i], 1);
		}
	}
	put_text(put, "\"", 1);
}

void put_uuid(struct put *put, const uint8_t *uuid)
{
	for (unsigned int i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			put_text(put, "-", 1);
		put_text(put, &"0123456789abcdef"[uuid[i] >> 4], 1);
		put_text(put, &"0123456789abcdef"[uuid[i] & 15], 1);
	}
}

void put_json_number(struct put *put, const char *name, uint64_t value)
{
	put_string(put, ",\n \"");
	put_string(put, name);
	put_string(put, "\": ");
	put_decimal(put, value, 1);
}

void put_json_string(struct put *put, const char *name, const char *value)
{
	put_string(put, ",\n \"");
	put_string(put, name);
	put_string(put, "\": ");
	put_json(put, value, strlen(value));
}

int put_open(struct put *put, int dir, const char *name, char *room, size_t size)
{
	*put = (struct put){.text = room, .room = size};
	put->fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
	return put->fd < 0 ? -errno : 0;
}

int put_close(struct put *put)
{
	int err = put_flush(put);

	close(put->fd);
	return err;
}
