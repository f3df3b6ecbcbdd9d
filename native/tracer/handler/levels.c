/* SPDX-License-Identifier: MIT */
/* levels.c - detail levels: set from the environment, and changed from outside while the program runs. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "writer/identity.h"
#include "platform/own_process.h"
#include "tracer.h"

union ptt_control_page ptt_control __attribute__((aligned(PTT_PAGE_MAX)));

/* The word of no domain: the highest level, which a trace-enabled thread library reads before it calls a trace point. */
#define HIGHEST 0
_Static_assert(offsetof(struct ptt_control, level) == 24, "the offset below");
__asm__(".globl __nptl_trace_detail_level\n"
	".type __nptl_trace_detail_level, @object\n"
	".size __nptl_trace_detail_level, 4\n"
	".set __nptl_trace_detail_level, ptt_control + 24\n");

static char control_path[512];
static bool shared; /* a file is mapped over ptt_control */
static uint32_t inherited[NPTL_DOMAIN_COUNT];
static uint32_t suspended_level[NPTL_DOMAIN_COUNT];

static const char *const domain_names[NPTL_DOMAIN_COUNT] = {
	[NPTL_DOMAIN_THREAD] = "thread", [NPTL_DOMAIN_MUTEX] = "mutex",     [NPTL_DOMAIN_RWLOCK] = "rwlock",
	[NPTL_DOMAIN_SPIN] = "spin",     [NPTL_DOMAIN_COND] = "cond",       [NPTL_DOMAIN_BARRIER] = "barrier",
	[NPTL_DOMAIN_SEM] = "sem",       [NPTL_DOMAIN_ONCE] = "once",       [NPTL_DOMAIN_C11] = "c11",
	[NPTL_DOMAIN_FUTEX] = "futex",   [NPTL_DOMAIN_PROCESS] = "process", [NPTL_DOMAIN_USER] = "user",
	[NPTL_DOMAIN_HANDLER] = "handler", [NPTL_DOMAIN_LLL] = "lll",
	[NPTL_DOMAIN_SYS] = "sys",
};

int ptt_domain(const char *name, size_t length)
{
	int i;

	for (i = 0; i < NPTL_DOMAIN_COUNT; i++)
		if (domain_names[i] && strlen(domain_names[i]) == length && !memcmp(domain_names[i], name, length))
			return i;
	return 0;
}

/* @spec: "mutex=3,cond=2", up to ';' or the end of the text */
static void set_domains(const char *spec)
{
	while (*spec && *spec != ';') {
		size_t name = strcspn(spec, "=,;");
		size_t item = strcspn(spec, ",;");
		int domain = ptt_domain(spec, name);

		if (domain && spec[name] == '=')
			ptt_control.control.level[domain] = (uint32_t)strtoul(spec + name + 1, NULL, 10);
		spec += item;
		if (*spec == ',')
			spec++;
	}
}

/*
 * The kernel clears the page in every child. So a child that the program made by a raw system call finds all levels
 * 0, and records nothing in its parent's buffers. This does not work if the page is shared with a process that
 * changes levels: the kernel clears only private memory (madvise(2)).
 */
static void wipe_on_fork(void)
{
	madvise(&ptt_control, sizeof(ptt_control), MADV_WIPEONFORK);
}

static uint32_t highest(void)
{
	uint32_t level = 0;
	unsigned int i;

	for (i = 1; i < NPTL_DOMAIN_COUNT; i++)
		if (domain_names[i] && ptt_control.control.level[i] > level)
			level = ptt_control.control.level[i];
	return level;
}

void ptt_set_levels(const char *verbosity, const char *tracing_arg)
{
	uint32_t level = verbosity && *verbosity ? (uint32_t)strtoul(verbosity, NULL, 10) : 2;
	unsigned int i;

	wipe_on_fork();
	for (i = 1; i < NPTL_DOMAIN_COUNT; i++)
		ptt_control.control.level[i] = level;
	/* only at the begin of an item: a directory's name may contain the same words */
	for (const char *item = tracing_arg; item && *item; item += *item == ';') {
		if (!strncmp(item, "level=", strlen("level=")))
			set_domains(item + strlen("level="));
		item += strcspn(item, ";");
	}
	ptt_control.control.level[HIGHEST] = highest();
}

void ptt_map_control(const char *directory)
{
	struct ptt_control now = ptt_control.control;
	int fd;

	memcpy(now.abi.magic, PTT_CONTROL_MAGIC, sizeof(now.abi.magic));
	now.abi.major = PTT_ABI_MAJOR;
	now.abi.minor = PTT_ABI_MINOR;
	now.abi.struct_size = sizeof(now);
	now.pid = (uint32_t)getpid();
	if (snprintf(control_path, sizeof(control_path), "%s/control-%u-%u", directory,
		     ptt_pid_namespace(PTT_OWN_PID_NAMESPACE), now.pid) >= (int)sizeof(control_path))
		return;
	if (!ptt_may_write(sizeof(ptt_control)))
		return;
	unlink(control_path); /* left by a killed process, or by this process before an exec */
	fd = open(control_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	/* allocate the blocks: on a full file system a store into a hole would raise SIGBUS */
	if (posix_fallocate(fd, 0, sizeof(ptt_control)) == 0 &&
	    pwrite(fd, &now, sizeof(now), 0) == (ssize_t)sizeof(now))
		shared = mmap(&ptt_control, sizeof(ptt_control), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) !=
			 MAP_FAILED;
	if (!shared)
		unlink(control_path);
	close(fd);
}

/* ------------------------------------------------------------ fork */

void ptt_keep_levels(void)
{
	memcpy(inherited, ptt_control.control.level, sizeof(inherited));
}

bool ptt_leave_control(void)
{
	control_path[0] = '\0';
	if (shared && mmap(&ptt_control, sizeof(ptt_control), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		return false;
	shared = false;
	memset(ptt_control.control.level, 0, sizeof(ptt_control.control.level));
	return true;
}

void ptt_clear_levels(void)
{
	for (unsigned int i = 0; i < sizeof(ptt_control.control.level) / sizeof(*ptt_control.control.level); i++)
		/* release: earlier events come before the store that says that tracing has ended */
		__atomic_store_n(&ptt_control.control.level[i], 0, __ATOMIC_RELEASE);
}

void ptt_suspend_levels(void)
{
	memcpy(suspended_level, ptt_control.control.level, sizeof(suspended_level));
	memset(ptt_control.control.level, 0, sizeof(ptt_control.control.level));
}

void ptt_resume_levels(void)
{
	memcpy(ptt_control.control.level, suspended_level, sizeof(suspended_level));
}

void ptt_inherit_levels(void)
{
	wipe_on_fork();
	memcpy(ptt_control.control.level, inherited, sizeof(inherited));
}

void ptt_drop_control(void)
{
	if (shared && ptt_control.control.pid == (uint32_t)getpid())
		unlink(control_path);
}
