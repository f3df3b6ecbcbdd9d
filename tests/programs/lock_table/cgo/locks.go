// SPDX-License-Identifier: MIT
// locks.go - two C locks, which goroutines use as the argument says; between the goroutines, Go's own channels.
package main

/*
#include <pthread.h>
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static int jobs;
static void take(int other) { pthread_mutex_lock(other ? &second : &first); }
static void give(int other) { pthread_mutex_unlock(other ? &second : &first); }
static void serve(void)
{
	pthread_mutex_lock(&guard);
	while (!jobs)
		pthread_cond_wait(&work, &guard);
	pthread_mutex_unlock(&guard);
}
static void put(void)
{
	pthread_mutex_lock(&guard);
	jobs = 1;
	pthread_cond_broadcast(&work);
	pthread_mutex_unlock(&guard);
}
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

func start(action func()) chan bool {
	done := make(chan bool)
	go func() {
		runtime.LockOSThread()
		action()
		close(done)
	}()
	return done
}

func nest(outer, inner C.int) {
	C.take(outer)
	C.take(inner)
	time.Sleep(time.Millisecond)
	C.give(inner)
	C.give(outer)
}

func main() {
	runtime.LockOSThread()
	taken := []chan bool{make(chan bool), make(chan bool)}
	switch os.Args[1] {
	case "contend":
		done := start(func() {
			C.take(0)
			close(taken[0])
			time.Sleep(200 * time.Millisecond)
			C.give(0)
		})
		<-taken[0]
		began := time.Now()
		C.take(0)
		waited := time.Since(began)
		C.give(0)
		<-done
		fmt.Println(waited.Nanoseconds())
	case "deadlock":
		for own := 0; own < 2; own++ {
			own := own
			start(func() {
				C.take(C.int(own))
				close(taken[own])
				<-taken[1-own]
				C.take(C.int(1 - own))
			})
		}
		<-taken[0]
		<-taken[1]
		time.Sleep(300 * time.Millisecond)
	case "orders":
		<-start(func() { nest(0, 1) })
		<-start(func() { nest(1, 0) })
	case "correct":
		one, other := start(func() { nest(0, 1) }), start(func() { nest(0, 1) })
		<-one
		<-other
	case "pool":
		one, other := start(func() { C.serve() }), start(func() { C.serve() })
		time.Sleep(200 * time.Millisecond)
		C.put()
		<-one
		<-other
	}
}
