/* SPDX-License-Identifier: MIT */
/* parallel.c - OpenMP: teams, critical sections, locks, tasks. */
#include <omp.h>
#include <stdio.h>

int main(void)
{
	long sum = 0, critical = 0, tasks = 0;
	omp_lock_t lock;
	int i;

	omp_init_lock(&lock);
	omp_set_num_threads(4);
	for (int round = 0; round < 20; round++) {
#pragma omp parallel for reduction(+ : sum)
		for (i = 0; i < 1000; i++) {
			sum += i;
#pragma omp critical
			critical++;
		}
#pragma omp parallel
#pragma omp single
		for (i = 0; i < 10; i++) {
#pragma omp task
			{
				omp_set_lock(&lock);
				tasks++;
				omp_unset_lock(&lock);
			}
		}
	}
	printf("%ld %ld %ld\n", sum, critical, tasks);
	return 0;
}
