#!/bin/sh
# glibc, Linux: a process that creates a named semaphore seems to have mapped a deleted file.
#
# proc(5): a mapping is marked "(deleted)" if its file has been deleted. sem_overview(7): the file of the
# semaphore /NAME is sem.NAME below /dev/shm. glibc makes the file with a random name, maps it, links it to
# the final name and unlinks the random name. The kernel still shows the random name while the process
# maps the semaphore. The file exists with the final name, and other processes may open it. So the mark
# does not mean that no other process can use the semaphore.
set -eu

tested=2.36
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

version=$(getconf GNU_LIBC_VERSION)
echo "version: $version, Linux $(uname -r) (tested: glibc $tested, Linux 6.18)"
case $version in
"glibc $tested") ;;
*)
	echo "this script knows glibc $tested only"
	exit 1
	;;
esac

cat >"$folder/named.c" <<'END'
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Prints how /proc/self/maps shows the mapping of the file, which it knows by its inode. */
static void show(const struct stat *file)
{
	char line[4096], name[4096];
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long inode;

	while (maps && fgets(line, sizeof line, maps)) {
		if (sscanf(line, "%*s %*s %*s %*s %lu %4095[^\n]", &inode, name) != 2 || inode != file->st_ino)
			continue;
		printf("%s name%s, links %lu\n", strstr(name, "/sem.findings-") ? "final" : "other",
		       strstr(name, " (deleted)") ? ", deleted" : "", (unsigned long)file->st_nlink);
	}
	if (maps)
		fclose(maps);
}

int main(void)
{
	char name[64], path[128];
	struct stat file;
	sem_t *sem;

	snprintf(name, sizeof name, "/findings-%ld", (long)getpid());
	snprintf(path, sizeof path, "/dev/shm/sem.%s", name + 1);
	sem = sem_open(name, O_CREAT | O_EXCL, 0600, 0);
	if (sem == SEM_FAILED)
		return 2;
	if (!stat(path, &file))
		show(&file);
	sem_close(sem);
	sem = sem_open(name, 0);
	if (sem != SEM_FAILED && !stat(path, &file))
		show(&file);
	sem_unlink(name);
	return 0;
}
END
cc -pthread -o "$folder/named" "$folder/named.c"

"$folder/named" >"$folder/seen"
created=$(sed -n 1p "$folder/seen")
opened=$(sed -n 2p "$folder/seen")
echo "expected, semaphore created here:  final name, links 1"
echo "seen, semaphore created here:      $created"
echo "expected, semaphore opened again:  final name, links 1"
echo "seen, semaphore opened again:      $opened"

[ "$created" = "other name, deleted, links 1" ] || exit 1
[ "$opened" = "final name, links 1" ] || exit 1
