/* SPDX-License-Identifier: MIT */
/* limits.c - a program that gives up rights and resources, and goes on: limits WHAT */
#include "work.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void limit(int what, rlim_t value)
{
	struct rlimit r = {value, value};

	if (setrlimit(what, &r))
		puts("cannot set the limit");
}

/* The system calls that threads and a little output need; any other call is fatal. */
static const int usual[] = {
	SYS_read, SYS_write, SYS_futex, SYS_exit, SYS_exit_group, SYS_mmap, SYS_munmap, SYS_mprotect, SYS_madvise,
	SYS_clone, SYS_set_robust_list, SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_brk, SYS_sched_yield, SYS_restart_syscall,
#ifdef SYS_clone3
	SYS_clone3,
#endif
#ifdef SYS_rseq
	SYS_rseq,
#endif
#ifdef SYS_newfstatat
	SYS_newfstatat,
#endif
};

#define USUAL ((int)(sizeof(usual) / sizeof(usual[0])))

static int filter(int by_syscall, int how)
{
	struct sock_filter code[2 * USUAL + 2];
	struct sock_fprog program = {.filter = code};
	int i, n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (i = 0; i < USUAL; i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)usual[i], 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, (unsigned int)how);
	program.len = (unsigned short)n;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (by_syscall)
		return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

static int fork_and_work(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(work_together(2, 50) == 100 ? 5 : 6);
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	char *memory;

	printf("%ld\n", work_together(2, 100));
	fflush(stdout);
	if (strcmp(what, "memory") == 0) {
		limit(RLIMIT_AS, (rlim_t)512 << 20);
		memory = malloc((size_t)64 << 20);
		printf("64 MB: %s\n", memory ? "there" : "not there");
		printf("1 GB: %s\n", malloc((size_t)1 << 30) ? "there" : "not there");
	} else if (strcmp(what, "file size") == 0) {
		limit(RLIMIT_FSIZE, 0);
		printf("fork: %d\n", fork_and_work());
	} else if (strcmp(what, "descriptors") == 0) {
		limit(RLIMIT_NOFILE, 3);
		printf("fork: %d\n", fork_and_work());
		printf("open: %d\n", open("/etc/passwd", O_RDONLY));
	} else if (strcmp(what, "user") == 0) {
		printf("%d %d %d\n", setgroups(0, NULL), setgid(65534), setuid(65534));
		printf("fork: %d\n", fork_and_work());
	} else if (strcmp(what, "directory") == 0) {
		printf("%d %d\n", chdir("/"), chroot(argv[2]));
		printf("fork: %d\n", fork_and_work());
	} else if (strcmp(what, "filter") == 0) {
		printf("filter: %d\n", filter(0, SECCOMP_RET_KILL_PROCESS));
	} else if (strcmp(what, "filter by syscall") == 0) {
		printf("filter: %d\n", filter(1, SECCOMP_RET_KILL_PROCESS));
	} else if (strcmp(what, "strict") == 0) {
		fflush(stdout);
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0);
		pthread_mutex_lock(&work_mutex);
		pthread_mutex_unlock(&work_mutex);
		syscall(SYS_exit, write(1, "strict\n", 7));
	} else if (strcmp(what, "locked memory") == 0) {
		limit(RLIMIT_MEMLOCK, 0);
		limit(RLIMIT_CORE, 0);
		limit(RLIMIT_STACK, 256 << 10);
	}
	fflush(stdout);
	printf("%ld\n", work_together(3, 1000));
	printf("%ld\n", work_together(3, 1000));
	fflush(stdout);
	return 9;
}
