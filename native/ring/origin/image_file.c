/* SPDX-License-Identifier: MIT */
/* image_file.c - appends to files of a process image in the session directory. */
#include "image_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "../platform/raw_syscall.h"
#include "../writer/session.h"

char *ptt_put_hex(char *to, uint64_t value)
{
	int shift = 60;

	while (shift && !(value >> shift & 15))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		*to++ = "0123456789abcdef"[value >> shift & 15];
	*to++ = ' ';
	return to;
}

void ptt_append_to_image(const char *name, const struct iovec *parts, int count)
{
	char path[sizeof(ptt_session.directory) + 32];
	char *end = path + strlen(strcpy(path, ptt_session.directory)), digits[16];
	uint32_t index = ptt_session.image;
	int n = 0;
	long fd;

	strcpy(end, name);
	end += strlen(end);
	do
		digits[n++] = (char)('0' + index % 10);
	while (index /= 10);
	while (n)
		*end++ = digits[--n];
	*end = '\0';
	/* O_NONBLOCK: the program may have put a pipe there */
	fd = ptt_raw_syscall(SYS_openat, AT_FDCWD, (long)path,
			     O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600, 0, 0);
	if (fd < 0)
		return;
	ptt_raw_syscall(SYS_writev, fd, (long)parts, count, 0, 0, 0);
	ptt_raw_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
}
