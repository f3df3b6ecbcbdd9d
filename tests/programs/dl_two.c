/* SPDX-License-Identifier: MIT */
/* dl_two.c - two threads each open and close a library: dl_two LIBRARY LIBRARY ROUNDS. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static long rounds;

static void *open_and_close(void *library)
{
	long i;

	for (i = 0; i < rounds; i++) {
		void *opened = dlopen(library, RTLD_NOW);

		if (!opened) {
			fprintf(stderr, "%s\n", dlerror());
			exit(1);
		}
		dlclose(opened);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t other;

	if (argc != 4)
		return 2;
	rounds = atol(argv[3]);
	pthread_create(&other, NULL, open_and_close, argv[1]);
	open_and_close(argv[2]);
	return pthread_join(other, NULL);
}
