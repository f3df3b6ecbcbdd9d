/* SPDX-License-Identifier: MIT */
/* numbered.c - threads of two processes send numbered events for ever, and say in a file which number they have sent. */
/*
 * numbered FILE: words 0 and 1 are of the threads of the parent, words 2 and 3 of the child; the program ends when word 4 is set.
 */
#include <fcntl.h>
#include <nptl_trace.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile uint64_t *word;

static void *work(void *argument)
{
	volatile uint64_t *own = argument;

	for (uint64_t number = 1; !word[4]; number++) {
		uint64_t sent[2] = {(uint64_t)(own - word), number};
		struct nptl_trace_event event = {
			.source = NPTL_TRACE_SOURCE_PROGRAM, .param = sent, .param_size = sizeof(sent)};

		nptl_trace_send_user_event(event);
		*own = number;
		if (number % 64 == 0)
			usleep(200);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int fd = argc > 1 ? open(argv[1], O_RDWR) : -1, first;
	pthread_t id[2];
	pid_t child;

	if (fd < 0)
		return 2;
	word = mmap(NULL, 64, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	child = fork();
	first = child ? 0 : 2;
	for (int i = 0; i < 2; i++)
		pthread_create(&id[i], NULL, work, (void *)&word[first + i]);
	for (int i = 0; i < 2; i++)
		pthread_join(id[i], NULL);
	if (child)
		waitpid(child, NULL, 0);
	return 0;
}
