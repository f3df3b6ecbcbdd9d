/* SPDX-License-Identifier: MIT */
/* control.c - levels of detail: from the environment, and changed from outside while the program runs. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tracer.h"

union ptt_control_page ptt_control __attribute__((aligned(4096)));

static char control_path[512];

static const char *const domain_names[NPTL_DOMAIN_COUNT] = {
	[NPTL_DOMAIN_THREAD] = "thread", [NPTL_DOMAIN_MUTEX] = "mutex",     [NPTL_DOMAIN_RWLOCK] = "rwlock",
	[NPTL_DOMAIN_SPIN] = "spin",     [NPTL_DOMAIN_COND] = "cond",       [NPTL_DOMAIN_BARRIER] = "barrier",
	[NPTL_DOMAIN_SEM] = "sem",       [NPTL_DOMAIN_ONCE] = "once",       [NPTL_DOMAIN_C11] = "c11",
	[NPTL_DOMAIN_FUTEX] = "futex",   [NPTL_DOMAIN_PROCESS] = "process", [NPTL_DOMAIN_USER] = "user",
	[NPTL_DOMAIN_HANDLER] = "handler",
};

static void set_domain(const char *name, size_t length, uint32_t level)
{
	unsigned int i;

	for (i = 0; i < NPTL_DOMAIN_COUNT; i++)
		if (domain_names[i] && strlen(domain_names[i]) == length && !memcmp(domain_names[i], name, length))
			ptt_control.control.level[i] = level;
}

/* "mutex=3,cond=2", ended by ';' or the end of the text */
static void set_domains(const char *spec)
{
	while (*spec && *spec != ';') {
		size_t name = strcspn(spec, "=,;");
		size_t item = strcspn(spec, ",;");

		if (spec[name] == '=')
			set_domain(spec, name, (uint32_t)strtoul(spec + name + 1, NULL, 10));
		spec += item;
		if (*spec == ',')
			spec++;
	}
}

void ptt_set_levels(const char *verbosity, const char *tracing_arg)
{
	uint32_t level = verbosity && *verbosity ? (uint32_t)strtoul(verbosity, NULL, 10) : 2;
	const char *spec = tracing_arg ? strstr(tracing_arg, "level=") : NULL;
	unsigned int i;

	for (i = 1; i < NPTL_DOMAIN_COUNT; i++)
		ptt_control.control.level[i] = level;
	if (spec)
		set_domains(spec + strlen("level="));
	__nptl_trace_detail_level = (int)level;
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
	if (snprintf(control_path, sizeof(control_path), "%s/control-%u", directory, now.pid) >= (int)sizeof(control_path))
		return;
	fd = open(control_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	/* allocated, not only sized: a store into a hole of a full file system would be a fatal signal */
	if (posix_fallocate(fd, 0, sizeof(ptt_control)) == 0 &&
	    pwrite(fd, &now, sizeof(now), 0) == (ssize_t)sizeof(now))
		mmap(&ptt_control, sizeof(ptt_control), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	else
		unlink(control_path);
	close(fd);
}

void ptt_drop_control(void)
{
	if (control_path[0] && ptt_control.control.pid == (uint32_t)getpid())
		unlink(control_path);
}
