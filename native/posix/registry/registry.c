/* SPDX-License-Identifier: MIT */
/* registry.c - the directory of a user and its files; processes in /proc. */
#include "registry.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "platform/own_process.h"
#include "platform/raw_syscall.h"

#define PX_DIRECTORY "posixtrace" PX_LAYOUT "-"

int px_shared_mutex_init(uint8_t lock[PX_LOCK_SIZE])
{
	pthread_mutexattr_t attr;
	int err;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	err = pthread_mutex_init((pthread_mutex_t *)lock, &attr);
	pthread_mutexattr_destroy(&attr);
	return err;
}

/* ------------------------------------------------------------ raw calls */

#ifdef __SANITIZE_THREAD__
/* ThreadSanitizer must see mappings and descriptors, or it takes a new mapping for an old mapping at the same address. */
void *px_raw_mmap(void *at, uint64_t size, int protection, int flags, int fd, long offset, int *err)
{
	int saved = errno;
	void *mapped = mmap(at, size, protection, flags, fd, offset);

	*err = mapped == MAP_FAILED ? -errno : 0;
	errno = saved;
	return *err ? NULL : mapped;
}

void px_raw_munmap(void *at, uint64_t size)
{
	munmap(at, size);
}

int px_raw_open(const char *path, int flags, int mode)
{
	int saved = errno, fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW, mode), err = errno;

	errno = saved;
	return fd < 0 ? -err : fd;
}

void px_raw_close(int fd)
{
	close(fd);
}
#else
void *px_raw_mmap(void *at, uint64_t size, int protection, int flags, int fd, long offset, int *err)
{
	long result = ptt_raw_syscall(SYS_mmap, (long)at, (long)size, protection, flags, fd, offset);

	*err = result < 0 && result > -4096 ? (int)result : 0;
	return *err ? NULL : (void *)result;
}

void px_raw_munmap(void *at, uint64_t size)
{
	ptt_raw_syscall(SYS_munmap, (long)at, (long)size, 0, 0, 0, 0);
}

int px_raw_open(const char *path, int flags, int mode)
{
	return (int)ptt_raw_syscall(SYS_openat, AT_FDCWD, (long)path, flags | O_CLOEXEC | O_NOFOLLOW, mode, 0, 0);
}

void px_raw_close(int fd)
{
	ptt_raw_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
}
#endif

static int status_of(int fd, struct stat *status)
{
	/* fstat() is no cancellation point and safe in signal handlers, but may set errno */
	int saved = errno, result = fstat(fd, status) < 0 ? -errno : 0;

	errno = saved;
	return result;
}

uint64_t px_raw_size(int fd)
{
	struct stat status;

	return status_of(fd, &status) < 0 ? 0 : (uint64_t)status.st_size;
}

/* ------------------------------------------------------------ processes */

static char *put_number(char *at, uint64_t number)
{
	char digits[20];
	int n = 0;

	do
		digits[n++] = (char)('0' + number % 10);
	while (number /= 10);
	while (n)
		*at++ = digits[--n];
	*at = '\0';
	return at;
}

/* The number in field @field of /proc/PID/stat, counted as in proc(5). @after_name: the text after the program's name. */
static uint64_t number_in(const char *after_name, int field)
{
	uint64_t number = 0;

	for (int at = 2; at < field && *after_name; after_name++)
		at += *after_name == ' ';
	for (; *after_name >= '0' && *after_name <= '9'; after_name++)
		number = number * 10 + (uint64_t)(*after_name - '0');
	return number;
}

/* Read /proc/PID/stat; @pid 0: of the calling process. Return: bytes or -errno. */
static long read_stat(uint32_t pid, char *text, size_t room)
{
	bool is_other = pid && pid != (uint32_t)ptt_raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
	char path[PTT_OWN_STAT_MAX] = "/proc/";
	long n;
	int fd;

	if (is_other) {
		char *at = put_number(path + sizeof("/proc/") - 1, pid);

		memcpy(at, "/stat", sizeof("/stat"));
	} else {
		ptt_own_stat_path(path);
	}
	/* "self" is a link; O_NOFOLLOW applies to the last component only */
	fd = px_raw_open(path, O_RDONLY, 0);
	if (fd < 0 && !is_other)
		fd = px_raw_open(PTT_OWN_STAT_ANY, O_RDONLY, 0);
	if (fd < 0)
		return fd;
	n = ptt_raw_syscall(SYS_read, fd, (long)text, (long)room - 1, 0, 0, 0);
	px_raw_close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n;
}

bool px_process_find(uint32_t pid, struct px_process *process)
{
	char text[1024], *name_end;

	if (read_stat(pid, text, sizeof(text)) <= 0)
		return false;
	name_end = strrchr(text, ')'); /* the name may contain any character, also ')' */
	if (!name_end || name_end[1] != ' ')
		return false;
	process->pid = 0;
	for (const char *at = text; *at >= '0' && *at <= '9'; at++)
		process->pid = process->pid * 10 + (uint32_t)(*at - '0');
	process->state = name_end[2];
	process->ppid = (uint32_t)number_in(name_end + 1, 4);
	process->start = number_in(name_end + 1, 22);
	return true;
}

bool px_process_exists(uint32_t pid)
{
	return pid && ptt_raw_syscall(SYS_kill, pid, 0, 0, 0, 0, 0) != -ESRCH;
}

static bool is_dead(char state)
{
	return state == 'Z' || state == 'X' || state == 'x';
}

bool px_process_lives(uint32_t pid, uint64_t start)
{
	struct px_process process;

	if (px_process_find(pid, &process))
		return process.start == start && !is_dead(process.state);
	return px_process_exists(pid);
}

char px_thread_state(uint32_t tid)
{
	struct px_process thread;

	if (!tid || ptt_raw_syscall(SYS_tkill, tid, 0, 0, 0, 0, 0) == -ESRCH)
		return 0;
	if (!px_process_find(tid, &thread))
		return '?';
	return is_dead(thread.state) ? 0 : thread.state;
}

/* ------------------------------------------------------------ the directory */

int px_directory(struct px_path *path, uint32_t user, bool make)
{
	static const char *const place[] = {"/dev/shm", "/tmp"};
	struct stat status;
	int fd = -ENOENT, err;

	for (int i = 0; i < 2 && fd < 0; i++) {
		size_t length = strlen(place[i]);
		char *at = path->text;

		memcpy(at, place[i], length);
		at[length] = '/';
		memcpy(at + length + 1, PX_DIRECTORY, sizeof(PX_DIRECTORY));
		put_number(at + length + sizeof(PX_DIRECTORY), user);
		fd = px_raw_open(path->text, O_RDONLY | O_DIRECTORY, 0);
		if (fd == -ENOENT && make) {
			err = (int)ptt_raw_syscall(SYS_mkdirat, AT_FDCWD, (long)path->text, 0700, 0, 0, 0);
			if (err == 0)
				ptt_raw_syscall(SYS_fchownat, AT_FDCWD, (long)path->text, user, -1, AT_SYMLINK_NOFOLLOW,
						0);
			fd = px_raw_open(path->text, O_RDONLY | O_DIRECTORY, 0);
		}
		if (fd == -ELOOP || fd == -ENOTDIR || fd == -EACCES)
			return -EPERM;
	}
	if (fd < 0)
		return fd;
	err = status_of(fd, &status);
	px_raw_close(fd);
	if (!err && (status.st_uid != user || status.st_mode & 0022))
		err = -EPERM;
	return err;
}

void px_path_add(struct px_path *path, const struct px_path *directory, char kind, uint64_t first, uint64_t second)
{
	size_t length = strlen(directory->text);
	char *at = path->text + length;

	memmove(path->text, directory->text, length);
	*at++ = '/';
	*at++ = kind;
	at = put_number(at, first);
	if (second) {
		*at++ = '.';
		put_number(at, second);
	}
}

long px_file_grow(int fd, uint64_t size, bool reserve)
{
	sigset_t too_big, before;
	long err;

	sigemptyset(&too_big);
	sigaddset(&too_big, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &too_big, &before);
	err = reserve ? ptt_raw_syscall(SYS_fallocate, fd, 0, 0, (long)size, 0, 0)
		      : ptt_raw_syscall(SYS_ftruncate, fd, (long)size, 0, 0, 0, 0);
	if (err == -EFBIG)
		sigtimedwait(&too_big, NULL, &(struct timespec){0, 0});
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

int px_file_open(const struct px_path *path, uint64_t size, uint32_t user)
{
	int fd = px_raw_open(path->text, O_RDWR, 0);
	struct stat status;
	long err;

	if (fd == -ENOENT && user != PX_NOT_MADE) {
		fd = px_raw_open(path->text, O_RDWR | O_CREAT | O_EXCL, 0600);
		if (fd == -EEXIST)
			fd = px_raw_open(path->text, O_RDWR, 0);
	}
	if (fd < 0)
		return fd;
	err = status_of(fd, &status);
	if (!err && user != PX_NOT_MADE && status.st_uid != user)
		err = ptt_raw_syscall(SYS_fchown, fd, user, -1, 0, 0, 0);
	/* several processes may do this: a second ftruncate() to the same size changes nothing */
	if (!err && (uint64_t)status.st_size < size)
		err = px_file_grow(fd, size, false);
	if (!err)
		return fd;
	px_raw_close(fd);
	return (int)err;
}

bool px_is_held(const struct px_path *path)
{
	int fd = px_file_open(path, 0, PX_NOT_MADE), err;
	struct px_stream *stream;
	bool held = true;

	if (fd < 0)
		return fd != -ENOENT;
	stream = px_raw_size(fd) < PX_PAGE ? NULL : px_raw_mmap(NULL, PX_PAGE, PROT_READ, MAP_SHARED, fd, 0, &err);
	px_raw_close(fd);
	if (stream) {
		held = px_lives(stream);
		px_raw_munmap(stream, PX_PAGE);
	}
	return held;
}

int px_registry_lock(const struct px_path *directory, uint32_t user, struct px_registry **registry)
{
	struct px_path path;
	long result;
	int fd, err;

	px_path_add(&path, directory, 'r', 0, 0);
	fd = px_file_open(&path, PX_PAGE, user);
	if (fd < 0)
		return fd;
	do
		result = ptt_raw_syscall(SYS_flock, fd, LOCK_EX, 0, 0, 0, 0);
	while (result == -EINTR);
	err = (int)result;
	if (!err)
		*registry = px_raw_mmap(NULL, PX_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0, &err);
	if (!err)
		return fd;
	px_raw_close(fd);
	return err;
}

void px_registry_unlock(int fd, struct px_registry *registry)
{
	px_raw_munmap(registry, PX_PAGE);
	/* close() is not enough: a child that another thread forks meanwhile has the descriptor too */
	ptt_raw_syscall(SYS_flock, fd, LOCK_UN, 0, 0, 0, 0);
	px_raw_close(fd);
}

int px_control_open(const struct px_path *directory, uint32_t pid, uint64_t start, uint32_t user)
{
	struct px_path path;

	px_path_add(&path, directory, 'p', pid, start);
	return px_file_open(&path, PX_PAGE, user);
}

int px_control_find(struct px_path *directory, uint32_t *user, uint32_t pid, uint64_t start)
{
	int fd = px_control_open(directory, pid, start, PX_NOT_MADE);
	char root[sizeof(directory->text)];
	struct dirent *entry;
	char *name;
	DIR *dir;

	if (fd >= 0)
		return fd;
	memcpy(root, directory->text, sizeof(root));
	name = strrchr(root, '/') + 1;
	name[-1] = '\0';
	dir = opendir(root);
	while (dir && fd < 0 && (entry = readdir(dir))) {
		struct px_path other;
		uint32_t owner;

		if (strncmp(entry->d_name, PX_DIRECTORY, sizeof(PX_DIRECTORY) - 1) != 0)
			continue;
		owner = (uint32_t)strtoul(entry->d_name + sizeof(PX_DIRECTORY) - 1, NULL, 10);
		if (px_directory(&other, owner, false) < 0)
			continue;
		fd = px_control_open(&other, pid, start, PX_NOT_MADE);
		if (fd >= 0) {
			*directory = other;
			*user = owner;
		}
	}
	if (dir)
		closedir(dir);
	return fd < 0 ? -ENOENT : fd;
}
