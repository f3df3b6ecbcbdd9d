/* SPDX-License-Identifier: MIT */
/*
 * store.c - a small key-value store that hangs: the program of the tutorial "A hang found in five minutes".
 *
 *     cc -g -pthread -o store store.c
 *     ./store
 *
 * Three clients put values into a table, each with a line in a journal. A housekeeper writes the journal out now and
 * then, and drops old values from the table. Both need both locks.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define CLIENTS 3
#define PUTS 2000
#define KEYS 64

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t journal_lock = PTHREAD_MUTEX_INITIALIZER;
static int table[KEYS];
static int journal_lines;

static void put(int key, int value)
{
	pthread_mutex_lock(&table_lock);
	table[key % KEYS] = value;
	pthread_mutex_lock(&journal_lock);
	journal_lines++;
	pthread_mutex_unlock(&journal_lock);
	pthread_mutex_unlock(&table_lock);
}

static void flush_journal(void)
{
	pthread_mutex_lock(&journal_lock);
	usleep(1000); /* the disk takes its time */
	if (journal_lines > 500) {
		pthread_mutex_lock(&table_lock);
		table[0] = 0;
		pthread_mutex_unlock(&table_lock);
		journal_lines = 0;
	}
	pthread_mutex_unlock(&journal_lock);
}

static void *client(void *number)
{
	pthread_setname_np(pthread_self(), "client");
	for (int i = 0; i < PUTS; i++) {
		put(i, *(int *)number);
		usleep(100);
	}
	return NULL;
}

static void *housekeeper(void *unused)
{
	(void)unused;
	pthread_setname_np(pthread_self(), "housekeeper");
	for (int i = 0; i < 20; i++) {
		usleep(20000);
		flush_journal();
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[CLIENTS + 1];
	int numbers[CLIENTS];

	pthread_create(&threads[CLIENTS], NULL, housekeeper, NULL);
	for (int i = 0; i < CLIENTS; i++) {
		numbers[i] = i;
		pthread_create(&threads[i], NULL, client, &numbers[i]);
	}
	for (int i = 0; i <= CLIENTS; i++)
		pthread_join(threads[i], NULL);
	printf("%d clients are done\n", CLIENTS);
	return 0;
}
