/* SPDX-License-Identifier: MIT */
/* missing.h - declarations that older headers and compilers lack; found or refused at run time. */
#ifndef PTT_MISSING_H
#define PTT_MISSING_H

#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Linux 5.3, 5.9 and 5.11; the same number for every processor. An older kernel answers ENOSYS. */
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

#if !__GLIBC_PREREQ(2, 34)
/* Newer C libraries export these names, and so does the tracer. */
pid_t _Fork(void);
int execveat(int directory, const char *path, char *const argv[], char *const env[], int flags);
#endif

#if !__GLIBC_PREREQ(2, 35)
struct link_map;

/* The result of _dl_find_object(), if the C library has it: the layout for processors without further members. */
struct dl_find_object {
	unsigned long long dlfo_flags;
	void *dlfo_map_start;
	void *dlfo_map_end;
	struct link_map *dlfo_link_map;
	void *dlfo_eh_frame;
	unsigned long long dlfo_reserved[7];
};
_Static_assert(sizeof(struct dl_find_object) == 12 * sizeof(unsigned long long), "dl_find_object");
#endif

/* ptt_thread_pointer - the thread pointer of the calling thread; GCC has the builtin for x86-64 since version 11. */
static inline void *ptt_thread_pointer(void)
{
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 11
	void *pointer;

	/* the first word at the thread pointer is its own address */
	__asm__("mov %%fs:0, %0" : "=r"(pointer));
	return pointer;
#else
	return __builtin_thread_pointer();
#endif
}

#endif
