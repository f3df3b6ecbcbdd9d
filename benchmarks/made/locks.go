// SPDX-License-Identifier: MIT
// locks.go - a Go program with C threads that wait for one another: no Go frame lies under the C frames.
package main

/*
#cgo LDFLAGS: -pthread
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) static void take(int how)
{
	pthread_mutex_lock(&lock);
	usleep(200 + how);
	pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) static void once(int left, int how)
{
	if (left)
		once(left - 1, how);
	else
		take(how);
	__asm__ volatile("");
}

static void *run(void *arg)
{
	for (int i = 0;; i++)
		once(i % 9, i % 50);
	return arg;
}

static void begin(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, run, NULL);
}

static void from_go(int how)
{
	once(how % 5, how % 50);
}
*/
import "C"

func main() {
	for i := 0; i < 3; i++ {
		C.begin()
	}
	for i := 0; i < 3; i++ {
		go func() {
			for how := 0; ; how++ {
				C.from_go(C.int(how))
			}
		}()
	}
	select {}
}
