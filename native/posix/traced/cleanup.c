/* SPDX-License-Identifier: MIT */
/* cleanup.c - removes the files of dead processes: control pages, names, streams; frees the slots of the streams. */
#include "traced.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "records.h"
#include "platform/raw_syscall.h"

/* Families of live processes. If there are more families, no names are removed. */
#define FAMILIES 1024

struct family {
	uint64_t start;
	uint32_t pid;
};

/* ------------------------------------------------------------ streams */

/* Close the stream, and free its memory except for the head, which traced processes still read. */
static void close_stream(const struct px_path *path)
{
	int fd = px_file_open(path, 0, PX_NOT_MADE), err;
	struct px_stream *stream;

	if (fd < 0)
		return;
	stream = px_raw_size(fd) < PX_PAGE
			 ? NULL
			 : px_raw_mmap(NULL, PX_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0, &err);
	if (stream) {
		px_close(stream);
		munmap(stream, PX_PAGE);
		ptt_raw_syscall(SYS_fallocate, fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PX_PAGE,
				(long)px_raw_size(fd) - PX_PAGE, 0, 0);
	}
	px_raw_close(fd);
}

static void sweep_streams(const struct px_path *directory, struct px_registry *registry)
{
	for (uint32_t i = 0; i < PX_SLOTS; i++) {
		struct px_registry_slot *slot = &registry->slot[i];
		struct px_path path;

		if (!slot->serial)
			continue;
		px_path_add(&path, directory, 's', slot->serial, 0);
		if ((px_process_lives(slot->owner_pid, slot->owner_start) && px_is_held(&path)) ||
		    (slot->finisher_pid && px_process_lives(slot->finisher_pid, slot->finisher_start)))
			continue;
		close_stream(&path);
		unlink(path.text);
		slot->serial = 0;
	}
}

static bool is_registered(const struct px_registry *registry, uint64_t serial)
{
	for (uint32_t i = 0; i < PX_SLOTS; i++)
		if (registry->slot[i].serial == serial)
			return true;
	return false;
}

/* ------------------------------------------------------------ files */

/* Parse the numbers of a file name such as "p12.345". Return: false if the name is not of this kind. */
static bool parse(const char *name, uint64_t *first, uint64_t *second)
{
	char *end;

	*first = strtoull(name + 1, &end, 10);
	*second = 0;
	if (end == name + 1)
		return false;
	if (*end == '.')
		*second = strtoull(end + 1, &end, 10);
	return *end == '\0';
}

/* Does the page's process live, or a controller that may ask for its names? If so, add the family of the page to @family. */
static bool is_page_needed(const struct px_path *path, const struct px_registry *registry, bool lives,
			   struct family *family, size_t *count)
{
	struct px_control page;
	int fd = px_raw_open(path->text, O_RDONLY, 0);
	bool whole;

	if (fd < 0) {
		/* its family is not known: keep all names */
		if (fd != -ENOENT)
			*count = FAMILIES;
		return lives || fd != -ENOENT;
	}
	whole = pread(fd, &page, sizeof(page), 0) == sizeof(page);
	px_raw_close(fd);
	for (uint32_t i = 0; whole && !lives && i < PX_SLOTS; i++)
		lives = page.serial[i] && is_registered(registry, page.serial[i]);
	if (whole && lives && page.family_pid && *count < FAMILIES)
		family[(*count)++] = (struct family){page.family_start, page.family_pid};
	return lives;
}

static bool is_needed(const struct family *family, size_t count, uint64_t pid, uint64_t start)
{
	for (size_t i = 0; i < count; i++)
		if (family[i].pid == pid && family[i].start == start)
			return true;
	return count == FAMILIES;
}

/* The first pass removes pages and streams, and collects families. The second pass (@names) removes the names of the others. */
static void sweep_files(DIR *dir, const struct px_path *directory, const struct px_registry *registry,
			struct family *family, size_t *count, bool names)
{
	struct dirent *entry;

	rewinddir(dir);
	while ((entry = readdir(dir))) {
		uint64_t first, second;
		struct px_path path;
		bool keep = true;

		if (!parse(entry->d_name, &first, &second))
			continue;
		px_path_add(&path, directory, entry->d_name[0], first, second);
		if (names) {
			keep = entry->d_name[0] != 'n' || is_needed(family, *count, first, second);
		} else if (entry->d_name[0] == 'p') {
			keep = is_page_needed(&path, registry, px_process_lives((uint32_t)first, second), family,
					      count);
		} else if (entry->d_name[0] == 's') {
			keep = is_registered(registry, first);
		}
		if (!keep)
			unlink(path.text);
	}
}

void px_clean_up_locked(const struct px_path *directory, struct px_registry *registry)
{
	struct family *family = calloc(FAMILIES, sizeof(*family));
	DIR *dir = opendir(directory->text);
	size_t count = 0;

	sweep_streams(directory, registry);
	if (dir && family) {
		sweep_files(dir, directory, registry, family, &count, false);
		sweep_files(dir, directory, registry, family, &count, true);
	}
	if (dir)
		closedir(dir);
	free(family);
}

void px_clean_up(const struct px_path *directory)
{
	struct px_registry *registry;
	int fd = px_registry_lock(directory, PX_NOT_MADE, &registry);

	if (fd < 0)
		return;
	px_clean_up_locked(directory, registry);
	px_registry_unlock(fd, registry);
}
