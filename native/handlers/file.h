/* SPDX-License-Identifier: MIT */
/* file.h - shared by the parts of the file handler: the buffer, and the trace directory that it is written to. */
#ifndef PTT_HANDLER_FILE_H
#define PTT_HANDLER_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "put.h"

/* The reason why the handler records nothing more. */
enum file_stopped { NOT_STOPPED, STOPPED_FULL, STOPPED_TO_WRITE };

struct file_buffer {
	uint32_t *array;
	uint64_t size;     /* in words */
	uint64_t reserved; /* words taken so far */
	uint64_t dropped;  /* events that found the buffer full */
	uint32_t stopped;  /* enum file_stopped */
	uint32_t saw_other_domain;   /* 1 = there were events outside of the process domain */
	uint32_t pid;
	char path[PATH_MAX]; /* of the trace directory, absolute; the final name may differ */
	bool forked;         /* this image is the child of a fork */
	bool claimed;        /* the directory is ours */
	struct put_identity identity;
};

/* Figures of the written packets. */
struct file_counts {
	uint64_t events;
	uint64_t threads;
	uint64_t lost; /* unfinished records */
	uint64_t bytes;
};

/* file_claim - make the trace directory and keep other processes from it. Return: 0 or -errno. */
int file_claim(struct file_buffer *buffer);

/* file_note_modules - remember the modules that are mapped now. Not for signal handlers. */
void file_note_modules(void);

/*
 * file_write - write all recorded events to the trace directory; may be called again
 * Uses no malloc, stdio or locks: it also runs just before the process executes another program. Return: 0 or -errno.
 */
int file_write(struct file_buffer *buffer);

/* file_put_info - write info/session.json and info/processes.jsonl in the directory @dir. Return: 0 or -errno. */
int file_put_info(int dir, const struct file_buffer *buffer, const struct file_counts *counts);

#endif
