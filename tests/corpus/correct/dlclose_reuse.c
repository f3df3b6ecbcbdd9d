/* SPDX-License-Identifier: MIT */
/* dlclose_reuse.c - a library with locks is unloaded; another library comes to the same place, with another order. */
/* with: module.c */
#include "corpus.h"
#include <dlfcn.h>

static int turn;

/* The same library twice is enough: after it is unloaded, its locks are new locks. */
static void use(const char *path, const char *routine)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void (*call)(void);

	if (!library)
		abort();
	*(void **)&call = dlsym(library, routine);
	call();
	dlclose(library);
}

static void *other(void *path)
{
	await(&turn, 1);
	use(path, "backwards");
	return NULL;
}

int main(int argc, char **argv)
{
	char path[4096];
	pthread_t thread;

	(void)argc;
	snprintf(path, sizeof(path), "%s-module.so", argv[0]);
	thread = start(other, path);
	use(path, "forwards");
	arrive(&turn);
	join(thread);
	return 0;
}
