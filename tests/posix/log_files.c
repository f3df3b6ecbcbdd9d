/* SPDX-License-Identifier: MIT */
/* log_files.c - files for a log: pipes, full files, files with other content, and files that are no log. */
#include "logs.h"

#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sched.h>

/* ------------------------------------------------------------ files */

CASE(bad_descriptors)
{
	int fd = scratch_file(O_RDWR);
	trace_id_t trid;

	FAILS(EBADF, posix_trace_create_withlog(0, NULL, -1, &trid));
	close(fd);
	FAILS(EBADF, posix_trace_create_withlog(0, NULL, fd, &trid));
	fd = open(scratch_path(), O_RDONLY);
	FAILS(EBADF, posix_trace_create_withlog(0, NULL, fd, &trid));
	/* no file was made */
	FAILS(ESRCH, posix_trace_create_withlog(dead_pid(), NULL, scratch_file(O_RDWR), &trid));
}

CASE(files_that_cannot_loop)
{
	int ends[2], error;
	trace_id_t trid;

	NEED(pipe(ends) == 0);
	FAILS(EINVAL, posix_trace_create_withlog(0, log_attributes(POSIX_TRACE_FLUSH, POSIX_TRACE_LOOP, 1000), ends[1], &trid));
	NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	FAILS(EINVAL, posix_trace_create_withlog(0, log_attributes(POSIX_TRACE_FLUSH, POSIX_TRACE_LOOP, 1000), ends[1], &trid));
	/* POSIX leaves open whether a log may be appended to them */
	error = posix_trace_create_withlog(0, log_attributes(POSIX_TRACE_FLUSH, POSIX_TRACE_APPEND, 1000), ends[1], &trid);
	CHECK(error == 0 || error == EINVAL);
	if (!error)
		OK(posix_trace_shutdown(trid));
}

CASE(descriptor_that_appends)
{
	trace_id_t trid;
	int fd, error;

	one = type("one");
	fd = scratch_file(O_RDWR | O_APPEND);
	error = posix_trace_create_withlog(0, NULL, fd, &trid);
	CHECK(error == 0 || error == EINVAL);
	if (error)
		return;
	OK(posix_trace_start(trid));
	emit_many(0, 10);
	OK(posix_trace_flush(trid));
	until_flushed(trid);
	emit_many(10, 20);
	OK(posix_trace_shutdown(trid));
	holds(scratch_path(), 0, 20);
}

CASE(write_only)
{
	trace_id_t trid = logged(scratch_file(O_WRONLY), log_attributes(POSIX_TRACE_FLUSH, POSIX_TRACE_LOOP, 30000));

	emit_many(0, 40);
	OK(posix_trace_flush(trid));
	until_flushed(trid);
	emit_many(40, 60);
	OK(posix_trace_shutdown(trid));
	holds(scratch_path(), 0, 60);
}

CASE(older_bytes_in_the_file)
{
	static char junk[300000];
	trace_id_t trid;
	int fd = scratch_file(O_WRONLY);

	memset(junk, 0x55, sizeof(junk));
	EQ(write(fd, junk, sizeof(junk)), sizeof(junk));
	EQ(lseek(fd, 0, SEEK_SET), 0);
	trid = logged(fd, NULL);
	emit_many(0, 10);
	OK(posix_trace_shutdown(trid));
	holds(scratch_path(), 0, 10);
}

CASE(older_log_in_the_file)
{
	trace_id_t trid = logged(scratch_file(O_WRONLY), log_attributes(POSIX_TRACE_FLUSH, POSIX_TRACE_APPEND, 1000));
	uint64_t next;
	int fd;

	for (next = 0; next < 1000; next += 50) {
		emit_many(next, next + 50);
		OK(posix_trace_flush(trid));
		until_flushed(trid);
	}
	OK(posix_trace_shutdown(trid));
	fd = open(scratch_path(), O_WRONLY);
	trid = logged(fd, log_attributes(POSIX_TRACE_FLUSH, POSIX_TRACE_APPEND, 1000));
	emit_many(5000, 5003);
	OK(posix_trace_flush(trid));
	until_flushed(trid);
	holds(scratch_path(), 5000, 5003); /* no event of the older log, even before the end */
	emit_many(5003, 5005);
	OK(posix_trace_shutdown(trid));
	holds(scratch_path(), 5000, 5005);
}

CASE(descriptor_may_be_closed_by_mistake)
{
	int fd = scratch_file(O_WRONLY);
	trace_id_t trid = logged(fd, NULL);

	emit_many(0, 10);
	close(fd); /* undefined, but the log is complete all the same if the library has its own descriptor */
	OK(posix_trace_shutdown(trid));
	holds(scratch_path(), 0, 10);
}

/* ------------------------------------------------------------ files that are full */

static void no_room(trace_id_t trid, int expected)
{
	struct posix_trace_status_info is = {0};
	int error, i;

	for (i = 0; i < 200 && !is.posix_stream_flush_error; i++) {
		emit_many(0, 50);
		error = posix_trace_flush(trid);
		CHECK(error == 0 || error == expected);
		is = until_flushed(trid);
		if (error)
			break;
		if (is.posix_stream_flush_error) {
			EQ(is.posix_stream_flush_error, expected);
			EQ(status_of(trid).posix_stream_flush_error, 0); /* reported once */
		}
	}
	CHECK(i < 200);
	error = posix_trace_shutdown(trid);
	CHECK(error == 0 || error == expected);
	emit_many(0, 5); /* and the program goes on */
}

CASE(device_without_room)
{
	int fd = open("/dev/full", O_WRONLY), error;
	trace_id_t trid;

	one = type("one");
	error = posix_trace_create_withlog(0, log_attributes(POSIX_TRACE_FLUSH, POSIX_TRACE_APPEND, 1000), fd, &trid);
	CHECK(error == ENOSPC || error == EINVAL || error == 0);
	if (error)
		return;
	OK(posix_trace_start(trid));
	emit_many(0, 10);
	FAILS(ENOSPC, posix_trace_shutdown(trid));
}

CASE(disk_without_room)
{
	char path[PATH_MAX];
	trace_id_t trid;
	int fd;

	scratch_file(O_RDWR);
	unlink(scratch_path());
	mkdir(scratch_path(), 0700);
	if (unshare(CLONE_NEWNS) || mount("none", "/", "none", MS_REC | MS_PRIVATE, "") ||
	    mount("none", scratch_path(), "tmpfs", 0, "size=256k")) {
		rmdir(scratch_path());
		suite_skip("cannot mount a small file system");
	}
	snprintf(path, sizeof(path), "%s/log", scratch_path());
	fd = open(path, O_RDWR | O_CREAT, 0600);
	NEED(fd >= 0);
	trid = logged(fd, log_attributes(POSIX_TRACE_FLUSH, POSIX_TRACE_APPEND, 1000));
	no_room(trid, ENOSPC);
	{ /* the part that fitted is a log */
		trace_id_t log = open_log(path);
		struct record r;
		uint64_t n = 0;

		while (next_number(log, &r))
			n++;
		CHECK(n > 0);
		OK(posix_trace_close(log));
	}
	close(fd);
	umount2(scratch_path(), MNT_DETACH);
	rmdir(scratch_path());
}

CASE(file_as_large_as_it_may_be)
{
	struct rlimit limit = {200000, 200000};
	trace_id_t trid = logged(scratch_file(O_RDWR), log_attributes(POSIX_TRACE_FLUSH, POSIX_TRACE_APPEND, 1000)), log;
	struct record r;

	NEED(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	no_room(trid, EFBIG); /* SIGXFSZ would have ended the program */
	log = open_log(scratch_path());
	NEED(next_number(log, &r));
	EQ(number_of(&r), 0);
}

static volatile int too_large;

static void count_signal(int number)
{
	(void)number;
	too_large++;
}

CASE(signals_of_the_program_stay_its_own)
{
	struct rlimit limit = {100000, 100000};
	trace_id_t trid = logged(scratch_file(O_RDWR), log_attributes(POSIX_TRACE_FLUSH, POSIX_TRACE_APPEND, 1000));
	struct sigaction action;
	static char data[200000];
	sigset_t set;

	signal(SIGXFSZ, count_signal);
	NEED(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	no_room(trid, EFBIG);
	EQ(too_large, 0); /* no signal for the library's own writes */
	EQ(sigaction(SIGXFSZ, NULL, &action), 0);
	CHECK(action.sa_handler == count_signal);
	EQ(pthread_sigmask(SIG_SETMASK, NULL, &set), 0);
	CHECK(!sigismember(&set, SIGXFSZ));
	CHECK(write(scratch_file(O_RDWR), data, sizeof(data)) <= 100000);
	CHECK(write(scratch_file(O_RDWR | O_APPEND), data, 1) == 1);
}

CASE(limit_is_too_small_for_a_stream)
{
	struct rlimit limit = {4096, 4096};
	trace_id_t trid;

	signal(SIGXFSZ, count_signal);
	NEED(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	EQ(posix_trace_create(0, NULL, &trid), ENOMEM);
	EQ(too_large, 0);
}

/* ------------------------------------------------------------ files that are no logs */

static void no_log(int fd)
{
	trace_id_t log;
	int error = posix_trace_open(fd, &log);

	CHECK(error == EINVAL || error == EBADF);
}

CASE(not_a_log)
{
	static char junk[100000];
	int fd;

	no_log(-1);
	no_log(4711);
	no_log(open("/", O_RDONLY));
	no_log(open("/dev/null", O_RDWR));
	no_log(open("/dev/zero", O_RDONLY));
	no_log(open(self(), O_RDONLY));
	fd = scratch_file(O_RDWR);
	no_log(fd);
	memset(junk, 0xa5, sizeof(junk));
	EQ(write(fd, junk, sizeof(junk)), sizeof(junk));
	EQ(lseek(fd, 0, SEEK_SET), 0);
	no_log(fd);
	FAILS(EINVAL, posix_trace_open(scratch_file(O_RDWR), NULL));
}

/* Reads a log to its end, or to where it is broken; returns how many of its numbers were right. */
static uint64_t read_broken(const char *path)
{
	trace_id_t log;
	struct record r;
	uint64_t next = 0;
	trace_event_id_t id;
	int unavailable = 0, fd = open(path, O_RDONLY), steps;

	if (posix_trace_open(fd, &log)) {
		close(fd);
		return 0;
	}
	for (steps = 0; steps < 5000 && !unavailable; steps++)
		if (posix_trace_eventtypelist_getnext_id(log, &id, &unavailable))
			break;
	for (steps = 0; steps < 5000; steps++) {
		if (posix_trace_getnext_event(log, &r.info, r.data, sizeof(r.data), &r.length, &r.unavailable) ||
		    r.unavailable)
			break;
		if (r.length > sizeof(r.data))
			return UINT64_MAX;
		if (same_type(r.info.posix_event_id, one) && r.length == 8 && number_of(&r) == next)
			next++;
	}
	posix_trace_close(log);
	close(fd);
	return steps < 5000 ? next : UINT64_MAX;
}

static char *log_bytes(size_t *size)
{
	trace_id_t trid = logged(scratch_file(O_RDWR), NULL);
	struct stat file;
	char *bytes;
	int fd;

	emit_many(0, 100);
	OK(posix_trace_shutdown(trid));
	fd = open(scratch_path(), O_RDONLY);
	NEED(fstat(fd, &file) == 0);
	*size = (size_t)file.st_size;
	bytes = malloc(*size);
	NEED(bytes && read(fd, bytes, *size) == (ssize_t)*size);
	close(fd);
	return bytes;
}

CASE(logs_cut_short)
{
	size_t size, cut, step, wrong = 0;
	char *bytes = log_bytes(&size);
	int fd = scratch_file(O_RDWR);

	step = size / (thorough() ? 200 : 20) + 1;
	EQ(write(fd, bytes, size), size);
	EQ(read_broken(scratch_path()), 100);
	for (cut = size; cut > step; cut -= step) {
		EQ(ftruncate(fd, (off_t)cut), 0);
		wrong += read_broken(scratch_path()) > 100;
	}
	EQ(wrong, 0);
	free(bytes);
}

CASE(logs_with_wrong_bytes)
{
	size_t size, at, wrong = 0;
	char *bytes = log_bytes(&size);
	int fd = scratch_file(O_RDWR), i, rounds = thorough() ? 1500 : 60;

	EQ(write(fd, bytes, size), size);
	srandom(4711);
	for (i = 0; i < rounds; i++) {
		char byte = (char)random();

		at = (size_t)random() % (i % 2 && size > 4096 ? 4096 : size);
		EQ(pwrite(fd, &byte, 1, (off_t)at), 1);
		wrong += read_broken(scratch_path()) > 100;
		EQ(pwrite(fd, bytes + at, 1, (off_t)at), 1);
	}
	EQ(wrong, 0);
	EQ(read_broken(scratch_path()), 100);
	free(bytes);
}
