/* SPDX-License-Identifier: MIT */
/* file_info.c - the files beside the packets of the file handler's trace: session.json, processes.jsonl. */
#define NPTL_TRACE_IMPLEMENTATION
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "module_list.h"
#include "nptl_trace.h"
#include "put.h"

#define MODULES_MAX 512u
#define GIGA UINT64_C(1000000000)

/* Modules that are mapped when the process begins or ends. The list of notes says since when calls come from a module. */
static struct module_note module[MODULES_MAX];
static uint32_t module_count;

/* ------------------------------------------------------------ modules */

static void read_notes(struct module_note *m, const char *notes, size_t size)
{
	while (size >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const void *)notes;
		size_t name = (note->n_namesz + 3u) & ~3u, whole = sizeof(*note) + name + ((note->n_descsz + 3u) & ~3u);

		if (whole > size)
			return;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && note->n_descsz <= sizeof(m->build_id) &&
		    memcmp(notes + sizeof(*note), "GNU", 4) == 0) {
			m->build_id_size = note->n_descsz;
			memcpy(m->build_id, notes + sizeof(*note) + name, note->n_descsz);
			return;
		}
		notes += whole;
		size -= whole;
	}
}

static int note_module(struct dl_phdr_info *info, size_t size, void *first)
{
	struct module_note *m = &module[module_count];
	const char *name = info->dlpi_name;
	ssize_t n;

	(void)size;
	if (module_count == MODULES_MAX)
		return 1;
	memset(m, 0, sizeof(*m));
	m->bias = info->dlpi_addr;
	if (*(bool *)first) {
		/* the program itself has no name in this list */
		n = readlink("/proc/self/exe", m->path, sizeof(m->path) - 1);
		m->path[n > 0 ? n : 0] = '\0';
	} else if (name && name[0] == '/' && strlen(name) < sizeof(m->path)) {
		strcpy(m->path, name);
	}
	*(bool *)first = false;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_NOTE && !m->build_id_size)
			read_notes(m, (const char *)(m->bias + p->p_vaddr), p->p_memsz);
	}
	module_list_span(info, &m->start, &m->end);
	m->start &= ~UINT64_C(4095);
	if (m->path[0])
		module_count++;
	return 0;
}

void file_note_modules(void)
{
	bool first = true;

	module_count = 0;
	dl_iterate_phdr(note_module, &first);
}

static void put_module(struct put *put, const struct module_note *m, const char *path)
{
	put_string(put, "{\"path\": ");
	put_json(put, path, strlen(path));
	put_string(put, ", \"start\": \"");
	put_hex(put, m->start);
	put_string(put, "\", \"end\": \"");
	put_hex(put, m->end);
	put_string(put, "\", \"offset\": 0, \"bias\": \"");
	put_hex(put, m->bias);
	put_string(put, "\", \"build_id\": \"");
	for (uint32_t k = 0; k < m->build_id_size; k++) {
		put_text(put, &"0123456789abcdef"[m->build_id[k] >> 4], 1);
		put_text(put, &"0123456789abcdef"[m->build_id[k] & 15], 1);
	}
	put_string(put, "\"");
	if (m->since) {
		put_string(put, ", \"since_clock\": ");
		put_decimal(put, m->since, 1);
	}
	put_string(put, "}");
}

/* The program itself is the first of the mapped modules. */
static void put_modules(struct put *put)
{
	const char *program = module_count ? module[0].path : "";
	const char *separator = "";
	uint32_t i;

	put_string(put, "{\"modules\": {\"process\": 0, \"modules\": [");
	for (i = 0; i < module_count + MODULE_NOTES_MAX; i++) {
		const struct module_note *m = i < module_count ? &module[i] : module_list_at(i - module_count);

		if (!m)
			continue;
		put_string(put, separator);
		put_module(put, m, m->path[0] ? m->path : program);
		separator = ", ";
	}
	put_string(put, "]}}\n");
}

/* ------------------------------------------------------------ processes.jsonl */

/* The program's arguments, as a JSON list of strings. */
static void put_command(struct put *put)
{
	char text[4096];
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text)), at = 0;

	if (fd >= 0)
		close(fd);
	put_string(put, "[");
	while (at < n) {
		size_t length = strnlen(text + at, (size_t)(n - at));

		put_string(put, at ? ", " : "");
		put_json(put, text + at, length);
		at += (ssize_t)length + 1;
	}
	put_string(put, "]");
}

static uint64_t now_unix_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * GIGA + (uint64_t)now.tv_nsec;
}

static void put_process(struct put *put, const struct file_buffer *buffer)
{
	char exe[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe));

	put_string(put, "{\"process\": {\"index\": 0, \"pid\": ");
	put_decimal(put, buffer->pid, 1);
	put_string(put, ", \"ppid\": ");
	put_decimal(put, (uint64_t)getppid(), 1);
	put_string(put, ", \"start_unix_ns\": ");
	put_signed(put, buffer->identity.start_unix_ns);
	put_string(put, ", \"exe\": ");
	put_json(put, exe, n > 0 ? (size_t)n : 0);
	put_string(put, ", \"cmdline\": ");
	put_command(put);
	put_string(put, "}}\n");
	put_modules(put);
	put_string(put, "{\"exit\": {\"process\": 0, \"end_unix_ns\": ");
	put_decimal(put, now_unix_ns(), 1);
	put_string(put, "}}\n");
}

/* ------------------------------------------------------------ session.json */

static void put_boot_id(struct put *put)
{
	char text[40];
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	put_json_string(put, "boot_id", text);
}

static void put_session(struct put *put, const struct file_buffer *buffer, const struct file_counts *counts)
{
	struct utsname host;

	put_string(put, "{\n \"version\": 1,\n \"state\": \"complete\",\n \"handler\": \"file\",\n \"uuid\": \"");
	put_uuid(put, buffer->identity.uuid);
	put_string(put, "\",\n \"level\": \"");
	put_signed(put, __nptl_trace_detail_level);
	put_string(put, "\",\n \"command\": ");
	put_command(put);
	if (uname(&host) == 0) {
		put_json_string(put, "hostname", host.nodename);
		put_json_string(put, "kernel", host.release);
		put_json_string(put, "machine", host.machine);
	}
	put_boot_id(put);
	put_json_number(put, "start_unix_ns", (uint64_t)buffer->identity.start_unix_ns);
	put_json_number(put, "end_unix_ns", now_unix_ns());
	put_json_number(put, "events", counts->events);
	put_json_number(put, "threads", counts->threads);
	put_json_number(put, "bytes", counts->bytes);
	put_string(put, ",\n \"clock\": {\"name\": \"monotonic\", \"frequency\": 1000000000, \"start\": ");
	put_decimal(put, buffer->identity.start_clock, 1);
	put_string(put, "},\n \"lost\": {\"buffers_full\": ");
	/* relaxed: a count */
	put_decimal(put, __atomic_load_n(&buffer->dropped, __ATOMIC_RELAXED), 1);
	put_string(put, ", \"unfinished\": ");
	put_decimal(put, counts->lost, 1);
	put_string(put, "}\n}\n");
}

int file_put_info(int dir, const struct file_buffer *buffer, const struct file_counts *counts)
{
	char room[4096];
	struct put put;
	int info, err;

	if (mkdirat(dir, "info", 0777) < 0 && errno != EEXIST)
		return -errno;
	info = openat(dir, "info", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (info < 0)
		return -errno;
	err = put_open(&put, info, "processes.jsonl", room, sizeof(room));
	if (err)
		goto out;
	put_process(&put, buffer);
	err = put_close(&put);
	if (!err)
		err = put_open(&put, info, "session.json", room, sizeof(room));
	if (err)
		goto out;
	put_session(&put, buffer, counts);
	err = put_close(&put);
out:
	close(info);
	return err;
}
