/* SPDX-License-Identifier: MIT */
/* modules.c - opens a module, uses it, closes it, many times: modules PATH now|deep|space|spaces TIMES */
#include "work.h"

#include <dlfcn.h>
#include <sys/wait.h>

#define SPACES_MAX 8

/* Return: not 0 if the module behaves differently in a child. */
static int run_in_child(long (*run)(int, long), long expected)
{
	int status = 1;
	pid_t child = fork();

	if (child == 0)
		_exit(run(2, 100) != expected);
	return waitpid(child, &status, 0) != child || status;
}

static void *open_module(const char *path, const char *how)
{
	void *library;

	if (strncmp(how, "space", 5) == 0)
		library = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
	else
		library = dlopen(path, strcmp(how, "deep") == 0 ? RTLD_NOW | RTLD_DEEPBIND : RTLD_NOW);
	if (!library) {
		puts(dlerror());
		exit(1);
	}
	return library;
}

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[2] : "now";
	int i, open = 0, at_once = strcmp(how, "spaces") == 0 ? SPACES_MAX : 1;
	void *libraries[SPACES_MAX];
	long total = 0, more;

	for (i = 0; i < (argc > 3 ? atoi(argv[3]) : 1); i++) {
		long (*run)(int, long);

		libraries[open] = open_module(argv[1], how);
		*(void **)&run = dlsym(libraries[open++], "module_run");
		more = run(2, 100);
		total += more;
		if (strcmp(how, "spaces") == 0 && run_in_child(run, more))
			puts("another result in a child");
		while (open == at_once || (open && i + 1 == atoi(argv[3])))
			dlclose(libraries[--open]);
	}
	printf("%ld %ld\n", total, work_together(2, 100));
	return 0;
}
