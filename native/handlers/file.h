/* SPDX-License-Identifier: MIT */
/* file.h - what the parts of the file handler have in common: the buffer, and the trace directory it ends up in. */
#ifndef PTT_HANDLER_FILE_H
#define PTT_HANDLER_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "put.h"

/* Why nothing more is recorded. */
enum file_stopped { NOT_STOPPED, STOPPED_FULL, STOPPED_TO_WRITE };

struct file_buffer {
	uint32_t *array;
	uint64_t size;     /* in words */
	uint64_t reserved; /* words taken so far */
	uint64_t dropped;  /* events that found it full */
	uint32_t stopped;  /* enum file_stopped */
	uint32_t others;   /* events that are not of the process domain */
	uint32_t pid;
	char path[PATH_MAX]; /* of the trace directory, absolute; its final name may be another */
	bool forked;         /* this image is the child of a fork */
	bool claimed;        /* the directory is ours */
	struct put_identity identity;
};

/* What went into the packets. */
struct file_counts {
	uint64_t events;
	uint64_t threads;
	uint64_t lost; /* records that nobody finished */
	uint64_t bytes;
};

/* file_claim - make the trace directory and keep others from it. Return: 0 or -errno. */
int file_claim(struct file_buffer *buffer);

/* file_note_modules - remember what is mapped now. Not for signal handlers. */
void file_note_modules(void);

/*
 * file_write - put what is recorded into the trace directory, once more if need be
 * Makes no use of malloc, stdio and locks: it also runs just before another program is executed. Return: 0 or -errno.
 */
int file_write(struct file_buffer *buffer);

/* file_put_info - info/session.json and info/processes.jsonl in the directory @dir. */
int file_put_info(int dir, const struct file_buffer *buffer, const struct file_counts *counts);

#endif
