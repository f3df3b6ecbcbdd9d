/* SPDX-License-Identifier: MIT */
/* corners.c - threads that the C library creates, the program's own stacks, ends in unusual places: corners WHAT */
#include "work.h"

#include <aio.h>
#include <mqueue.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#define TIMES 200

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long count;
static sem_t told;

/* ------------------------------------------------------------ threads that the C library creates */

static void count_up(void)
{
	pthread_mutex_lock(&mutex);
	count++;
	pthread_mutex_unlock(&mutex);
	sem_post(&told);
}

static void on_notify(union sigval value)
{
	(void)value;
	count_up();
}

static void wait_for(long wanted)
{
	while (wanted--)
		sem_wait(&told);
}

static void notified(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_notify};
	struct itimerspec at = {.it_value.tv_nsec = 1000};
	struct mq_attr attr = {.mq_maxmsg = 4, .mq_msgsize = 8};
	static char text[] = "text", name[64], got[8];
	struct aiocb io = {.aio_buf = text, .aio_nbytes = 4, .aio_sigevent = event};
	FILE *file = tmpfile();
	timer_t timer;
	mqd_t queue;

	printf("timer: %d\n", timer_create(CLOCK_MONOTONIC, &event, &timer));
	for (int i = 0; i < TIMES; i++) {
		timer_settime(timer, 0, &at, NULL);
		wait_for(1);
	}
	timer_delete(timer);
	printf("%ld\n", count);
	snprintf(name, sizeof(name), "/ptt-corners-%d", (int)getpid());
	queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
	mq_unlink(name);
	for (int i = 0; queue != (mqd_t)-1 && i < TIMES; i++) {
		if (mq_notify(queue, &event) || mq_send(queue, "x", 1, 0))
			puts("cannot be notified");
		wait_for(1);
		mq_receive(queue, got, sizeof(got), NULL);
	}
	io.aio_fildes = fileno(file);
	for (int i = 0; i < 20; i++) {
		printf("%d", aio_write(&io));
		wait_for(1);
	}
	printf("\n%ld\n", queue == (mqd_t)-1 ? count + TIMES : count);
}

/* ------------------------------------------------------------ stacks */

static void *use_all(void *stack)
{
	static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
	struct timespec past = {.tv_sec = 1};
	sem_t sem;

	(void)stack;
	sem_init(&sem, 0, 0);
	pthread_setname_np(pthread_self(), "small");
	pthread_mutex_lock(&mutex);
	count++;
	pthread_cond_timedwait(&never, &mutex, &past);
	pthread_mutex_unlock(&mutex);
	sem_post(&sem);
	sem_timedwait(&sem, &past);
	return NULL;
}

static void *fork_one(void *stack)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		use_all(stack);
		_exit(4);
	}
	waitpid(pid, &status, 0);
	return (void *)(long)WEXITSTATUS(status);
}

/* The stack is gone once the thread has been joined; below the stack nothing may be written. */
static long on_own_stack(void *(*routine)(void *), size_t size)
{
	char *map = mmap(NULL, size + 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;
	pthread_t thread;
	void *value = NULL;
	int result;

	mprotect(map, 8192, PROT_NONE);
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, map + 8192, size);
	result = pthread_create(&thread, &attr, routine, map);
	if (!result)
		pthread_join(thread, &value);
	munmap(map, size + 8192);
	return result ? -result : (long)value;
}

static char small[16384];

static void on_small_stack(int number)
{
	(void)number;
	sem_post(&told);
	sem_post(&told);
}

static void *with_small_signal_stack(void *argument)
{
	stack_t stack = {.ss_sp = small + 8192, .ss_size = 8192};

	sigaltstack(&stack, NULL);
	for (int i = 0; i < TIMES; i++)
		pthread_kill(pthread_self(), SIGUSR1);
	return argument;
}

static void stacks(void)
{
	struct sigaction action = {.sa_handler = on_small_stack, .sa_flags = SA_ONSTACK};
	pthread_t thread;
	long sum = 0;

	for (int i = 0; i < TIMES; i++)
		sum += on_own_stack(use_all, (size_t)PTHREAD_STACK_MIN);
	printf("%ld %ld\n", sum, count);
	printf("%ld\n", on_own_stack(fork_one, (size_t)PTHREAD_STACK_MIN));
	sigaction(SIGUSR1, &action, NULL);
	memset(small, 7, 8192);
	pthread_create(&thread, NULL, with_small_signal_stack, NULL);
	pthread_join(thread, NULL);
	wait_for(2 * TIMES);
	for (int i = 0; i < 8192; i++) /* below its end */
		sum += small[i] != 7;
	printf("%ld\n", sum);
}

/* ------------------------------------------------------------ ends */

static pthread_key_t key;

static void cancel_itself(void *value)
{
	(void)value;
	pthread_cancel(pthread_self());
	count_up();
	pthread_testcancel();
}

static void on_exit_signal(int number)
{
	(void)number;
	pthread_exit((void *)3);
}

static void *exit_in_destructor(void *value)
{
	pthread_setspecific(key, value);
	return value;
}

static void *exit_in_handler(void *value)
{
	pthread_kill(pthread_self(), SIGUSR2);
	return value;
}

static void *disabled_in_wait(void *value)
{
	struct timespec soon;
	static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
	int result;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cancel(pthread_self());
	clock_gettime(CLOCK_REALTIME, &soon);
	soon.tv_nsec += soon.tv_nsec < 990000000 ? 10000000 : 0;
	pthread_mutex_lock(&mutex);
	result = pthread_cond_timedwait(&never, &mutex, &soon);
	pthread_mutex_unlock(&mutex);
	sem_init(value, 0, 1);
	return (void *)(long)(result == ETIMEDOUT && !sem_wait(value));
}

static long join(void *(*routine)(void *), void *argument)
{
	pthread_t thread;
	void *value;

	pthread_create(&thread, NULL, routine, argument);
	pthread_join(thread, &value);
	return (long)value;
}

static void ends(void)
{
	struct sigaction action = {.sa_handler = on_exit_signal};
	sem_t sem;

	pthread_key_create(&key, cancel_itself);
	printf("%ld %ld\n", join(exit_in_destructor, (void *)1), count);
	sigaction(SIGUSR2, &action, NULL);
	printf("%ld\n", join(exit_in_handler, (void *)1));
	printf("%ld\n", join(disabled_in_wait, &sem));
}

/* ------------------------------------------------------------ asynchronous cancellation */

static void *spin_for_ever(void *started)
{
	volatile unsigned long n = 0;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	sem_post(started);
	for (;;)
		n++;
	return NULL;
}

/* No program may do this; but a thread cancelled inside the tracer must keep no other thread waiting. */
static void *post_for_ever(void *started)
{
	sem_t mine;

	sem_init(&mine, 0, 0);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	sem_post(started);
	for (;;) {
		sem_post(&mine);
		sem_trywait(&mine);
	}
	return NULL;
}

static void asynchronous(void)
{
	void *(*const routine[])(void *) = {spin_for_ever, post_for_ever};
	long cancelled = 0;
	pthread_t thread;
	void *value;

	for (int i = 0; i < TIMES; i++) {
		pthread_create(&thread, NULL, routine[i % 2], &told);
		wait_for(1);
		pthread_cancel(thread);
		pthread_join(thread, &value);
		cancelled += value == PTHREAD_CANCELED;
	}
	printf("%ld\n", cancelled);
}

/* ------------------------------------------------------------ creations that fail late */

static void *touch(void *value)
{
	count_up();
	return value;
}

static void failing(void)
{
	struct sched_param param = {.sched_priority = 0};
	pthread_attr_t attr;
	pthread_t thread;
	cpu_set_t none;

	CPU_ZERO(&none);
	pthread_attr_init(&attr);
	/* the thread exists already when the kernel refuses; its routine never runs */
	for (int i = 0; i < TIMES; i++) {
		pthread_attr_setaffinity_np(&attr, sizeof(none), &none);
		if (pthread_create(&thread, &attr, touch, NULL) != EINVAL)
			puts("no error");
	}
	pthread_attr_destroy(&attr);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	for (int i = 0; i < TIMES; i++)
		pthread_create(&thread, &attr, touch, NULL);
	wait_for(TIMES);
	printf("%ld %d\n", count, pthread_attr_setschedparam(&attr, &param));
}

int main(int argc, char **argv)
{
	int at_start = errno;
	const char *what = argc > 1 ? argv[1] : "";

	sem_init(&told, 0, 0);
	if (strcmp(what, "notified") == 0)
		notified();
	else if (strcmp(what, "stacks") == 0)
		stacks();
	else if (strcmp(what, "ends") == 0)
		ends();
	else if (strcmp(what, "asynchronous") == 0)
		asynchronous();
	else if (strcmp(what, "failing") == 0)
		failing();
	printf("%ld, errno %d\n", work_together(3, 1000), at_start);
	return 0;
}
