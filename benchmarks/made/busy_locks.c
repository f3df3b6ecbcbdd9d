/* SPDX-License-Identifier: MIT */
/* busy_locks.c - threads that all want one lock of a library (-DGLIB, -DQT, -DSDL, -DUV, -DOMP), for ever. */
#include <pthread.h>
#include <stddef.h>

/* Declared here, so that no headers of the libraries are needed. */
#if defined(GLIB)
void g_mutex_lock(void *lock);
void g_mutex_unlock(void *lock);
#define TAKE g_mutex_lock
#define GIVE g_mutex_unlock
#elif defined(QT)
void take_lock(void *lock) __asm__("_ZN6QMutex4lockEv");
void give_lock(void *lock) __asm__("_ZN6QMutex6unlockEv");
#define TAKE take_lock
#define GIVE give_lock
#elif defined(SDL)
void *SDL_CreateMutex(void);
int SDL_LockMutex(void *lock);
int SDL_UnlockMutex(void *lock);
#define MAKE SDL_CreateMutex()
#define TAKE SDL_LockMutex
#define GIVE SDL_UnlockMutex
#elif defined(UV)
int uv_mutex_init(void *lock);
void uv_mutex_lock(void *lock);
void uv_mutex_unlock(void *lock);
#define MAKE (uv_mutex_init(room), room)
#define TAKE uv_mutex_lock
#define GIVE uv_mutex_unlock
#elif defined(OMP)
void omp_init_lock(void *lock);
void omp_set_lock(void *lock);
void omp_unset_lock(void *lock);
#define MAKE (omp_init_lock(room), room)
#define TAKE omp_set_lock
#define GIVE omp_unset_lock
#endif
#ifndef MAKE
#define MAKE room
#endif

static _Alignas(64) char room[256];
static void *lock;
static volatile long account;

__attribute__((noinline)) void deposit(long amount)
{
	TAKE(lock);
	for (long i = 0; i < amount; i++)
		account += i;
	GIVE(lock);
}

static void *clerk(void *unused)
{
	for (long i = 0;; i++)
		deposit(2000 + i % 2000);
	return unused;
}

int main(void)
{
	pthread_t thread[6];

	lock = MAKE;
	for (int i = 0; i < 6; i++)
		pthread_create(&thread[i], NULL, clerk, NULL);
	for (int i = 0; i < 6; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
