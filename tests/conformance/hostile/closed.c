/* SPDX-License-Identifier: MIT */
/* closed.c - makes its own headers and its library's headers unreadable, as programs that protect themselves do: closed LIBRARY */
#include "work.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>

#ifdef LIBRARY
__attribute__((visibility("default"))) long called(int threads)
{
	return work_together(threads, 300);
}
#else
static void close_head(const struct link_map *map)
{
	if (mprotect((void *)map->l_addr, 4096, PROT_NONE))
		perror("mprotect");
}

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	long (*called)(int) = library ? (long (*)(int))dlsym(library, "called") : NULL;
	struct link_map *map = NULL;

	if (!called || dlinfo(library, RTLD_DI_LINKMAP, &map))
		return 1;
	called(1);
	close_head(map);
	close_head(_r_debug.r_map);
	printf("%ld %ld\n", called(2), work_together(3, 1000));
	fflush(stdout);
	/* the dynamic linker would look up destructors in the closed headers */
	_exit(0);
}
#endif
