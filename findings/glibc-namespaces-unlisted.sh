#!/bin/sh
# glibc: dl_iterate_phdr() leaves out the shared objects that the program loaded by dlmopen().
#
# dl_iterate_phdr(3): the function shows which shared objects an application has loaded, and calls back
# once for each of them. glibc shows the link-map namespace of the caller alone. An object in another
# namespace is not in the list, though the program runs its code. /proc/self/maps and dladdr() know it.
set -eu

tested=2.36
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

version=$(getconf GNU_LIBC_VERSION)
echo "version: $version (tested: glibc $tested)"
case $version in
"glibc $tested") ;;
*)
	echo "this script knows glibc $tested only"
	exit 1
	;;
esac

echo 'int answer(void) { return 42; }' >"$folder/plugin.c"
cat >"$folder/lists.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

static int count(struct dl_phdr_info *info, size_t size, void *listed)
{
	(void)size;
	*(int *)listed += strstr(info->dlpi_name, "plugin.so") != NULL;
	return 0;
}

static int is_mapped(const char *path)
{
	char line[4096];
	FILE *maps = fopen("/proc/self/maps", "r");
	int found = 0;

	while (maps && fgets(line, sizeof line, maps))
		found |= strstr(line, path) != NULL;
	if (maps)
		fclose(maps);
	return found;
}

int main(int argc, char **argv)
{
	Lmid_t where = argc > 2 ? LM_ID_NEWLM : LM_ID_BASE;
	void *plugin = dlmopen(where, argv[1], RTLD_NOW);
	int (*answer)(void) = NULL;
	Dl_info info = { 0 };
	int listed = 0;

	if (plugin)
		answer = (int (*)(void))dlsym(plugin, "answer");
	if (!answer)
		return 2;
	dl_iterate_phdr(count, &listed);
	printf("answer %d, mapped %d, dladdr %d, listed %d\n", answer(), is_mapped("plugin.so"),
	       dladdr((void *)answer, &info) && strstr(info.dli_fname, "plugin.so"), listed);
	return 0;
}
END
cc -shared -fPIC -o "$folder/plugin.so" "$folder/plugin.c"
cc -o "$folder/lists" "$folder/lists.c"

expected="answer 42, mapped 1, dladdr 1, listed 1"
own=$("$folder/lists" "$folder/plugin.so")
other=$("$folder/lists" "$folder/plugin.so" new-namespace)
echo "expected, dlmopen(LM_ID_BASE):  $expected"
echo "seen, dlmopen(LM_ID_BASE):      $own"
echo "expected, dlmopen(LM_ID_NEWLM): $expected"
echo "seen, dlmopen(LM_ID_NEWLM):     $other"

[ "$own" = "$expected" ] || exit 1
[ "$other" = "answer 42, mapped 1, dladdr 1, listed 0" ] || exit 1
