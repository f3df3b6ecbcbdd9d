#!/bin/sh
# glibc 2.43: a thread in pthread_join() sleeps on a state word, whose value looks like the id of thread 2.
#
# Up to glibc 2.42, pthread_join() sleeps on the id of the joined thread, which the kernel clears when the
# thread ends. Tools that look at a sleeping thread from outside read the joined thread from the arguments of
# futex(). In glibc 2.43 the thread sleeps on another word, and the value is a state. In a container, a thread
# with the id 2 usually exists: then the tool names an innocent thread.
set -eu

tested=2.43-7
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

package=libc6_${tested}_amd64.deb
if ! curl -fsS -o "$folder/$package" "https://deb.debian.org/debian/pool/main/g/glibc/$package"; then
	echo "Debian has no $package any more"
	exit 1
fi
dpkg-deb -x "$folder/$package" "$folder/root"
library=$folder/root/usr/lib/x86_64-linux-gnu

cat >"$folder/join.c" <<'END'
#define _GNU_SOURCE
#include <gnu/libc-version.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile long joined_tid, joining_tid;
static pthread_t joined;

static void *stay(void *unused)
{
	joined_tid = syscall(SYS_gettid);
	pause();
	return unused;
}

static void *join(void *unused)
{
	joining_tid = syscall(SYS_gettid);
	pthread_join(joined, NULL);
	return unused;
}

int main(void)
{
	unsigned long value = 0;
	pthread_t joining;
	char path[64];
	FILE *file;

	pthread_create(&joined, NULL, stay, NULL);
	pthread_create(&joining, NULL, join, NULL);
	usleep(300000);
	snprintf(path, sizeof(path), "/proc/self/task/%ld/syscall", joining_tid);
	file = fopen(path, "r");
	if (!file || fscanf(file, "202 %*s %*s %lx", &value) != 1)
		return 1;
	printf("glibc %s: the value is %s", gnu_get_libc_version(),
	       value == (unsigned long)joined_tid ? "the id of the joined thread\n" : "");
	if (value != (unsigned long)joined_tid)
		printf("%lu\n", value);
	fflush(stdout);
	_exit(0);
}
END
cc -pthread -o "$folder/join" "$folder/join.c"

"$folder/join"
seen=$("$library/ld-linux-x86-64.so.2" --library-path "$library" "$folder/join")
echo "expected:  glibc 2.43: the value is the id of the joined thread"
echo "seen:      $seen"

[ "$seen" = "glibc 2.43: the value is 2" ] || exit 1
