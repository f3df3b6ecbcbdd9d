/* SPDX-License-Identifier: MIT */
/* openmp.c - parallel regions of OpenMP: the argument says where their threads wait. Needs no header of OpenMP. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int omp_get_thread_num(void);
void omp_set_nested(int nested);
void omp_init_lock(void *lock);
void omp_set_lock(void *lock);
void omp_unset_lock(void *lock);

enum { THREADS = 3, NAP = 100000, LATE = 3 * NAP, TURNS = 1000 };

static void *first, *second; /* locks, declared for any OpenMP library */

static long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* The other thread is late at a barrier. */
static void contend(void)
{
	long long began = 0, ended = 0;

#pragma omp parallel num_threads(2)
	{
		if (omp_get_thread_num() == 1)
			usleep(LATE);
		if (omp_get_thread_num() == 0)
			began = now();
#pragma omp barrier
		if (omp_get_thread_num() == 0)
			ended = now();
	}
	printf("%lld\n", ended - began);
}

/* The other thread is late at the end of the region, where no function of OpenMP is called. */
static void end(void)
{
	long long began = 0;

#pragma omp parallel num_threads(2)
	{
		if (omp_get_thread_num() == 1)
			usleep(LATE);
		if (omp_get_thread_num() == 0)
			began = now();
	}
	printf("%lld\n", now() - began);
}

static void work(void)
{
	__asm__ volatile("" ::: "memory");
}

static int taken[2];

static void say(int number)
{
	__atomic_store_n(&taken[number], 1, __ATOMIC_RELEASE);
}

static void await(int number)
{
	while (!__atomic_load_n(&taken[number], __ATOMIC_ACQUIRE))
		usleep(100);
}

/* Two critical sections, each within the other: at once, or one after the other. */
static void cross(int at_once)
{
#pragma omp parallel num_threads(2)
	if (omp_get_thread_num() == 0) {
#pragma omp critical(one)
		{
			if (at_once) {
				say(0);
				await(1);
				ualarm(LATE, 0);
			}
#pragma omp critical(other)
			work();
		}
		say(0);
	} else {
		if (!at_once)
			await(0);
#pragma omp critical(other)
		{
			say(1);
			await(0);
#pragma omp critical(one)
			work();
		}
	}
}

/* Threads have no work between two regions. */
static void pool(void)
{
	for (int i = 0; i < 2; i++) {
#pragma omp parallel num_threads(THREADS)
		work();
		usleep(NAP);
	}
}

static void take(void **outer, void **inner)
{
	omp_set_lock(outer);
	omp_set_lock(inner);
	omp_unset_lock(inner);
	omp_unset_lock(outer);
}

/* Two orders of two locks, in two regions that never overlap. */
static void correct(void)
{
	omp_init_lock(&first);
	omp_init_lock(&second);
#pragma omp parallel num_threads(THREADS)
	if (omp_get_thread_num() == 1)
		take(&first, &second);
#pragma omp parallel num_threads(THREADS)
	if (omp_get_thread_num() == 2)
		take(&second, &first);
}

/* Loops of all kinds, sections, critical sections, and regions within regions. Return: the number of steps done. */
static int all(void)
{
	int sum = 0, inner = 0;

#pragma omp parallel for num_threads(THREADS) reduction(+ : sum) schedule(dynamic, 2)
	for (int i = 0; i < TURNS; i++)
		sum++;
#pragma omp parallel for num_threads(THREADS) reduction(+ : sum) schedule(guided)
	for (int i = 0; i < TURNS; i++)
		sum++;
#pragma omp parallel for num_threads(THREADS) reduction(+ : sum) schedule(runtime)
	for (int i = 0; i < TURNS; i++)
		sum++;
#pragma omp parallel sections num_threads(THREADS) reduction(+ : sum)
	{
#pragma omp section
		sum++;
#pragma omp section
		sum++;
	}
	omp_set_nested(1);
#pragma omp parallel num_threads(THREADS)
	{
#pragma omp for schedule(dynamic)
		for (int i = 0; i < TURNS; i++)
#pragma omp critical
			inner++;
#pragma omp parallel num_threads(2)
		{
#pragma omp barrier
#pragma omp critical
			inner++;
		}
#pragma omp single
#pragma omp task
#pragma omp critical
		inner++;
	}
	return sum + inner;
}

int main(int count, char **what)
{
	if (count < 2)
		return 2;
	if (strcmp(what[1], "contend") == 0)
		contend();
	else if (strcmp(what[1], "deadlock") == 0)
		cross(1);
	else if (strcmp(what[1], "orders") == 0)
		cross(0);
	else if (strcmp(what[1], "end") == 0)
		end();
	else if (strcmp(what[1], "pool") == 0)
		pool();
	else if (strcmp(what[1], "correct") == 0)
		correct();
	else
		return all() != 4 * TURNS + 2 + 2 * THREADS + 1;
	return 0;
}
