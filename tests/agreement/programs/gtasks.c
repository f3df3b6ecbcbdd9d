/* SPDX-License-Identifier: MIT */
/* gtasks.c - a pool, a queue and locks of GLib. */
#include <glib.h>

static GMutex lock;
static GRWLock table;
static GCond done;
static int left = 40;

static void work(gpointer data, gpointer queue)
{
	g_mutex_lock(&lock);
	g_usleep(200);
	g_mutex_unlock(&lock);
	g_rw_lock_reader_lock(&table);
	g_usleep(100);
	g_rw_lock_reader_unlock(&table);
	g_async_queue_push(queue, data);
	g_mutex_lock(&lock);
	if (!--left)
		g_cond_signal(&done);
	g_mutex_unlock(&lock);
}

int main(void)
{
	GAsyncQueue *queue = g_async_queue_new();
	GThreadPool *pool = g_thread_pool_new(work, queue, 4, TRUE, NULL);

	for (gintptr i = 1; i <= 40; i++)
		g_thread_pool_push(pool, (gpointer)i, NULL);
	for (int i = 0; i < 40; i++)
		g_async_queue_pop(queue);
	g_mutex_lock(&lock);
	while (left)
		g_cond_wait(&done, &lock);
	g_mutex_unlock(&lock);
	g_thread_pool_free(pool, FALSE, TRUE);
	return 0;
}
