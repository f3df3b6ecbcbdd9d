/* SPDX-License-Identifier: MIT */
/* identity.c - the pid of a traced process in our PID namespace. The process may know its pid in another PID namespace. */
#include "writer/identity.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "../collector.h"

#define STATUS_MAX 4096

/* The last number of the line NSpid of /proc/PID/status: the pid in the innermost namespace. 0 if there is no such line. */
static uint32_t innermost_pid(const char *pid)
{
	char path[32], text[STATUS_MAX], *line;
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%.10s/status", pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = '\0';
	line = strstr(text, "\nNSpid:");
	if (!line)
		return 0;
	line[1 + strcspn(line + 1, "\n")] = '\0';
	return (uint32_t)strtoul(strrchr(line, '\t'), NULL, 10);
}

/* Does the process have this file mapped? */
static bool maps_file(const char *pid, const char *device_and_inode)
{
	char path[32], line[512];
	bool mapped = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%.10s/maps", pid);
	file = fopen(path, "re");
	while (file && !mapped && fgets(line, sizeof(line), file))
		mapped = strstr(line, device_and_inode) != NULL;
	if (file)
		fclose(file);
	return mapped;
}

/* Is @pid, a pid in our namespace, the process of the entry? The cheap question comes first. */
static bool is_process(const struct ptt_collector *c, const char *pid, const struct ptt_process *process)
{
	char path[32];
	uint32_t namespace;

	snprintf(path, sizeof(path), "/proc/%.10s/ns/pid", pid);
	namespace = ptt_pid_namespace(path);
	if (process->pid_namespace && namespace)
		return namespace == process->pid_namespace && innermost_pid(pid) == process->pid;
	/* a namespace cannot be read: the process must have the segment mapped */
	return innermost_pid(pid) == process->pid && maps_file(pid, c->device_and_inode);
}


void identity_init(struct ptt_collector *c, int segment_fd)
{
	struct stat st;

	c->pid_namespace = ptt_pid_namespace(PTT_OWN_PID_NAMESPACE);
	if (fstat(segment_fd, &st) == 0)
		snprintf(c->device_and_inode, sizeof(c->device_and_inode), " %02x:%02x %llu ", major(st.st_dev),
			 minor(st.st_dev), (unsigned long long)st.st_ino);
}

uint32_t identity_pid(const struct ptt_collector *c, const struct ptt_process *process)
{
	struct dirent *entry;
	uint32_t pid = 0;
	DIR *all;

	if (!process->pid || (process->pid_namespace && process->pid_namespace == c->pid_namespace) || !c->pid_namespace)
		return process->pid;
	all = opendir("/proc");
	while (all && !pid && (entry = readdir(all)))
		if (isdigit((unsigned char)entry->d_name[0]) && is_process(c, entry->d_name, process))
			pid = (uint32_t)strtoul(entry->d_name, NULL, 10);
	if (all)
		closedir(all);
	return pid;
}
