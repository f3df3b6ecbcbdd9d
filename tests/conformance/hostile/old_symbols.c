/* SPDX-License-Identifier: MIT */
/* old_symbols.c - a program as an old linker made it: conditions of four words, libpthread as a separate library. */
#include "work.h"

#include <dlfcn.h>
#include <time.h>

/* A condition of glibc 2.2.5 has 48 bytes; the library uses the first word only, and never writes beyond. */
struct old_condition {
	char data[48];
	char guard[16];
};

int old_init(struct old_condition *cond, const void *attr);
int old_destroy(struct old_condition *cond);
int old_wait(struct old_condition *cond, pthread_mutex_t *mutex);
int old_timedwait(struct old_condition *cond, pthread_mutex_t *mutex, const struct timespec *deadline);
int old_signal(struct old_condition *cond);
int old_broadcast(struct old_condition *cond);
int old_create(pthread_t *thread, const pthread_attr_t *attr, void *(*routine)(void *), void *arg);
int old_join(pthread_t thread, void **value);

__asm__(".symver old_init, pthread_cond_init@GLIBC_2.2.5");
__asm__(".symver old_destroy, pthread_cond_destroy@GLIBC_2.2.5");
__asm__(".symver old_wait, pthread_cond_wait@GLIBC_2.2.5");
__asm__(".symver old_timedwait, pthread_cond_timedwait@GLIBC_2.2.5");
__asm__(".symver old_signal, pthread_cond_signal@GLIBC_2.2.5");
__asm__(".symver old_broadcast, pthread_cond_broadcast@GLIBC_2.2.5");
__asm__(".symver old_create, pthread_create@GLIBC_2.2.5");
__asm__(".symver old_join, pthread_join@GLIBC_2.2.5");

static struct old_condition cond;
static int ready;

static void *set_ready(void *arg)
{
	pthread_mutex_lock(&work_mutex);
	ready++;
	old_signal(&cond);
	old_broadcast(&cond);
	pthread_mutex_unlock(&work_mutex);
	return arg;
}

static int wait_ready(int until)
{
	int result = 0;

	pthread_mutex_lock(&work_mutex);
	while (ready < until && !result)
		result = old_wait(&cond, &work_mutex);
	pthread_mutex_unlock(&work_mutex);
	return result;
}

int main(void)
{
	const struct timespec past = {.tv_sec = 1};
	void *library, *value = NULL;
	int (*lock)(pthread_mutex_t *), (*unlock)(pthread_mutex_t *);
	pthread_t thread;
	int i;

	memset(&cond, 0, sizeof(cond));
	memset(cond.guard, 0x55, sizeof(cond.guard));
	printf("init %d\n", old_init(&cond, NULL));
	for (i = 1; i <= 20; i++) {
		old_create(&thread, NULL, set_ready, (void *)(long)i);
		if (wait_ready(i))
			puts("wait failed");
		old_join(thread, &value);
	}
	pthread_mutex_lock(&work_mutex);
	printf("timedwait %d\n", old_timedwait(&cond, &work_mutex, &past));
	pthread_mutex_unlock(&work_mutex);
	printf("last %ld, destroy %d\n", (long)value, old_destroy(&cond));
	for (i = 0; i < (int)sizeof(cond.guard); i++)
		if (cond.guard[i] != 0x55)
			puts("written behind the condition");

	library = dlopen("libpthread.so.0", RTLD_NOW);
	*(void **)&lock = dlsym(library, "pthread_mutex_lock");
	*(void **)&unlock = dlsym(library, "pthread_mutex_unlock");
	printf("libpthread: %s\n", library ? "opened" : dlerror());
	if (lock && unlock) {
		printf("%d ", lock(&work_mutex));
		printf("%d\n", unlock(&work_mutex));
	}
	printf("%ld\n", work_together(4, 1000));
	return 0;
}
