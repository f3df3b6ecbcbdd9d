/* SPDX-License-Identifier: MIT */
/* image_file.h - files in the session directory that a process image appends to, for the recorder to read. */
#ifndef PTT_IMAGE_FILE_H
#define PTT_IMAGE_FILE_H

#include <stdint.h>
#include <sys/uio.h>

/*
 * ptt_append_to_image - append @parts in one piece to the file whose name is @name, "/modules-" say, and the image's number
 * Async-signal-safe, no cancellation point; to be called where system calls are allowed. Fails in silence.
 */
void ptt_append_to_image(const char *name, const struct iovec *parts, int count) __attribute__((visibility("hidden")));

/* ptt_put_hex - a number and a space. Return: where they end. */
char *ptt_put_hex(char *to, uint64_t value) __attribute__((visibility("hidden")));
#define PTT_HEX_MAX 17u /* bytes that this takes */

#endif
