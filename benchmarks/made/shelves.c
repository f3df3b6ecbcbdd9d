/* SPDX-License-Identifier: MIT */
/* shelves.c - threads that store into one connection of SQLite, for ever. */
#include <pthread.h>
#include <stddef.h>

/* Declared here, so that no header is needed. */
int sqlite3_open(const char *name, void **db);
int sqlite3_exec(void *db, const char *sql, void *each, void *with, char **error);

static void *db;

__attribute__((noinline)) void store(void)
{
	sqlite3_exec(db, "insert into shelf values (1)", NULL, NULL, NULL);
}

static void *clerk(void *unused)
{
	for (;;)
		store();
	return unused;
}

int main(void)
{
	pthread_t thread[4];

	sqlite3_open(":memory:", &db);
	sqlite3_exec(db, "create table shelf (book)", NULL, NULL, NULL);
	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, clerk, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
