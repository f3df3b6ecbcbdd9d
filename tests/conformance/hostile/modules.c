/* SPDX-License-Identifier: MIT */
/* modules.c - opens a module, uses it, closes it, many times: modules PATH now|deep TIMES */
#include "work.h"

#include <dlfcn.h>

int main(int argc, char **argv)
{
	int flags = argc > 2 && strcmp(argv[2], "deep") == 0 ? RTLD_NOW | RTLD_DEEPBIND : RTLD_NOW;
	long total = 0;
	int i;

	for (i = 0; i < (argc > 3 ? atoi(argv[3]) : 1); i++) {
		void *library = dlopen(argv[1], flags);
		long (*run)(int, long);

		if (!library) {
			puts(dlerror());
			return 1;
		}
		*(void **)&run = dlsym(library, "module_run");
		total += run(2, 100);
		dlclose(library);
	}
	printf("%ld %ld\n", total, work_together(2, 100));
	return 0;
}
