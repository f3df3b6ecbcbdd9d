#!/bin/sh
# glibc 2.43: the lock of a stream that a thread holds has the depth 0.
#
# The lock of a FILE is three words: a lock, the depth of recursion, and the owner. Up to glibc 2.40, the depth
# of a lock that is held once is 1. Debuggers take a depth of 0 for a free lock. In newer versions, the depth of
# a lock that is held once is 0, and only the owner says that the lock is held.
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

cat >"$folder/depth.c" <<'END'
#include <gnu/libc-version.h>
#include <stdio.h>

int main(void)
{
	const unsigned int *lock;
	unsigned int depth;

	flockfile(stdin);
	lock = (const unsigned int *)stdin->_lock;
	depth = lock[1];
	printf("glibc %s: held once, depth %u, %s\n", gnu_get_libc_version(), depth,
	       lock[2] || lock[3] ? "with an owner" : "without an owner");
	return 0;
}
END
cc -o "$folder/depth" "$folder/depth.c"

"$folder/depth"
seen=$("$library/ld-linux-x86-64.so.2" --library-path "$library" "$folder/depth")
echo "expected:  glibc 2.43: held once, depth 1, with an owner"
echo "seen:      $seen"

[ "$seen" = "glibc 2.43: held once, depth 0, with an owner" ] || exit 1
