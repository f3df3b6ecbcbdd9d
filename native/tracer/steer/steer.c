/* SPDX-License-Identifier: MIT */
/* steer.c - reads a plan, and holds threads back at its sites, or at random. */
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "origin/call_site.h"
#include "platform/confined.h"
#include "steer.h"

#define PATIENCE_MOST_NS UINT64_C(60000000000)

static struct ptt_steer *plan;

/* By site of the plan: its address in this process; 0: its module is not here. A closed module leaves its addresses behind. */
static uintptr_t address_of[PTT_STEER_SITES];

static bool has_python_sites; /* does the plan have places in a program of Python? */

static struct ptt_receiver behind;
static void (*module_behind)(const struct nptl_trace_module *module);
static ptt_before_lock_t *before_lock_behind;

/*
 * What events have told about the thread. A signal handler that takes locks may come between two stores, and spoil an entry. A
 * wrong entry makes a thread wait in vain, or not wait.
 */
static __thread struct {
	uint64_t held[PTT_STEER_HELD]; /* addresses of its locks; above an address the number of the site from 1, or 0 */
	uint32_t count;
	uint32_t spins;	 /* spin locks that it holds */
	uint32_t serial; /* it was the n-th thread to be created; 0: the first thread */
	uint32_t visits; /* random decisions so far */
	bool inside;	 /* it is held back: signal handlers run without delay */
} self INITIAL_EXEC;

#define HELD_SITE_SHIFT 48

/* ------------------------------------------------------------ the plan */

static bool is_whole(const struct ptt_steer *p)
{
	uint32_t i;

	if (memcmp(p->abi.magic, PTT_STEER_MAGIC, sizeof(p->abi.magic)) != 0 || p->abi.major != PTT_ABI_MAJOR ||
	    p->abi.struct_size != sizeof(*p) || p->sites > PTT_STEER_SITES || p->roles > PTT_STEER_ROLES ||
	    p->patience_ns > PATIENCE_MOST_NS || (p->mode != PTT_STEER_MEET && p->mode != PTT_STEER_RANDOM))
		return false;
	for (i = 0; i < p->roles; i++)
		if (p->role[i].asked > p->sites || p->role[i].held > p->sites || p->role[i].after > p->sites)
			return false;
	for (i = 0; i < p->sites; i++)
		if (p->site[i].id_size > PTT_STEER_ID || memchr(p->site[i].name, 0, sizeof(p->site[i].name)) == NULL)
			return false;
	return true;
}

bool ptt_steer_open(void)
{
	const char *path = getenv("PTT_STEER");
	struct stat st;
	void *at;
	int fd;

	if (!path || !*path)
		return false;
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return false;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(*plan)) {
		close(fd);
		return false;
	}
	at = mmap(NULL, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		return false;
	if (!is_whole(at)) {
		munmap(at, sizeof(*plan));
		return false;
	}
	plan = at;
	for (uint32_t i = 0; i < plan->sites; i++)
		has_python_sites |= plan->site[i].python;
	/* relaxed: a count */
	__atomic_fetch_add(&plan->processes, 1, __ATOMIC_RELAXED);
	ptt_upcalls.before_lock = &before_lock_behind;
	return true;
}

/* ------------------------------------------------------------ sites */

static bool is_module_of(const struct ptt_steer_site *site, const struct nptl_trace_module *module)
{
	const char *path = module->path, *name;

	if (site->id_size)
		return module->build_id_size >= site->id_size && memcmp(module->build_id, site->id, site->id_size) == 0;
	if (module->build_id_size)
		return false;
	/* the dynamic linker has no path for the program itself */
	name = strrchr(*path ? path : program_invocation_name, '/');
	name = name ? name + 1 : *path ? path : program_invocation_name;
	return strncmp(name, site->name, sizeof(site->name) - 1) == 0;
}

/* The tracer meets a module, before the first event from there. */
static void find_sites_in(const struct nptl_trace_module *module)
{
	for (uint32_t i = 0; module && i < plan->sites; i++) {
		uintptr_t address = module->bias + plan->site[i].offset;

		if (!plan->site[i].python && is_module_of(&plan->site[i], module) && address > (uintptr_t)module->start && address <= (uintptr_t)module->end)
			/* relaxed: a word that leads to no other memory */
			__atomic_store_n(&address_of[i], address, __ATOMIC_RELAXED);
	}
	if (module_behind)
		module_behind(module);
}

/*
 * The number of a call site in the plan, from 1; 0: the plan does not have it. From a function with a small frame.
 *
 * @in_python: the call may come from a program of Python
 */
static uint32_t site_at(void *site, bool in_python)
{
	/* makes the tracer meet the module, before the addresses are compared */
	uintptr_t address = (uintptr_t)ptt_program_site(site);
	uint32_t place = in_python && has_python_sites ? ptt_python_place(site) : 0;

	for (uint32_t i = 0; i < plan->sites; i++)
		if (plan->site[i].python ? place && place == plan->site[i].offset :
					   address && __atomic_load_n(&address_of[i], __ATOMIC_RELAXED) == address)
			return i + 1;
	return 0;
}

static void count_pass(uint32_t site)
{
	/* relaxed: a count */
	if (site)
		__atomic_fetch_add(&plan->site[site - 1].passed, 1, __ATOMIC_RELAXED);
}

/* ------------------------------------------------------------ delays */

/* May the thread be held back now? Makes system calls, and walks the stack. */
static bool may_wait(const void *site)
{
	/* relaxed, both: a thread that sees them late waits once more */
	return !self.inside && !self.spins && !ptt_is_confined() && !__atomic_load_n(&plan->over, __ATOMIC_RELAXED) &&
	       __atomic_load_n(&plan->spent_ns, __ATOMIC_RELAXED) < plan->total_ns && !ptt_is_real_time() &&
	       !ptt_is_in_signal_handler(site);
}

static void count_delay(uint64_t began)
{
	/* relaxed, both: counts */
	__atomic_fetch_add(&plan->spent_ns, ptt_now_ns() - began, __ATOMIC_RELAXED);
	__atomic_fetch_add(&plan->delays, 1, __ATOMIC_RELAXED);
}

static void sleep_for(uint64_t ns)
{
	const struct timespec time = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
	uint64_t began = ptt_now_ns();

	self.inside = true;
	ptt_raw_syscall(SYS_nanosleep, (long)&time, 0, 0, 0, 0, 0);
	self.inside = false;
	count_delay(began);
}

/* ------------------------------------------------------------ roles */

static bool has_taken_at(uint32_t site)
{
	for (uint32_t i = 0; i < self.count && i < PTT_STEER_HELD; i++)
		if (!site || self.held[i] >> HELD_SITE_SHIFT == site)
			return true;
	return false;
}

static bool holds(uint64_t object)
{
	for (uint32_t i = 0; i < self.count && i < PTT_STEER_HELD; i++)
		if ((self.held[i] & PTT_OBJECT_MASK) == object)
			return true;
	return false;
}

/* The role of a thread that asks for a lock. @site: of the plan */
static bool has_role(const struct ptt_steer_role *role, uint32_t site)
{
	if (!role->asked || role->asked != site)
		return false;
	/* a thread without locks closes no cycle */
	return (role->after && !role->held) || has_taken_at(role->held);
}

static void wait_as(uint32_t role, uint64_t wanted)
{
	struct ptt_arrival arrival = {.wanted = wanted, .role = role};
	uint64_t began = ptt_now_ns();
	void *state;

	for (; arrival.held_count < self.count && arrival.held_count < PTT_STEER_HELD; arrival.held_count++)
		arrival.held[arrival.held_count] = self.held[arrival.held_count] & PTT_OBJECT_MASK;
	self.inside = true;
	/* A call from Python may wait, so others expect that it gives up the lock of the interpreter. A call from C does not. */
	state = plan->role[role].asked || !plan->site[plan->role[role].held - 1].python ? NULL : ptt_python_let_run();
	if (ptt_meet(plan, &arrival))
		/* relaxed: a count */
		__atomic_fetch_add(&plan->role[role].met, 1, __ATOMIC_RELAXED);
	ptt_python_go_on(state);
	self.inside = false;
	count_delay(began);
}

/* The thread asks for a lock: hold it back if it has a role. */
static void come(const void *object, void *site)
{
	uint64_t wanted = (uint64_t)(uintptr_t)object & PTT_OBJECT_MASK;
	uint32_t at = site_at(site, false);

	count_pass(at);
	for (uint32_t i = 0; i < plan->roles; i++) {
		const struct ptt_steer_role *role = &plan->role[i];

		/* It has the lock already: a recursive lock, or a condition wait that is about to release the lock. A reader may
		 * read again. */
		if (!has_role(role, at) || (holds(wanted) && !(role->after && role->held)))
			continue;
		if (may_wait(site))
			wait_as(i, wanted);
		return;
	}
}

/* The thread has taken a lock at a site of the plan: hold it back if that makes a role. */
static void stay(uint32_t at, const void *site)
{
	for (uint32_t i = 0; i < plan->roles; i++) {
		if (plan->role[i].asked || plan->role[i].held != at)
			continue;
		if (may_wait(site))
			wait_as(i, 0);
		return;
	}
}

/* ------------------------------------------------------------ random delays */

/*
 * Most random tests need few changes of the order, but at the right moment (PCT: Burckhardt et al., ASPLOS 2010). Priorities need
 * rights, so delays stand for them. The seed chooses how rare long delays are, as nobody knows the length of the run. In each
 * stretch of visits, a quarter of the threads is slow, and makes short delays.
 *
 * A decision depends on the seed, on the thread by its order of creation, on the number of the visit, and on the place of the
 * call in its page of memory, which address-space randomization keeps. So a seed makes the same decisions again.
 */
#define STRETCH 32u
#define SHORT 64u /* share of a short delay in a long delay */

/* The finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014). */
static uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static void visit(void *site)
{
	static const uint32_t rarity[] = {2, 4, 16, 64};
	uint64_t thread = mix(plan->seed ^ (uint64_t)self.serial << 32), draw;
	uint32_t number = ++self.visits, rare = rarity[mix(plan->seed) % 4];
	uint64_t ns = 0;

	draw = mix(thread ^ number ^ ((uint64_t)(uintptr_t)site & 4095) << 48);
	if (draw % rare == 0)
		ns = plan->patience_ns / 256 * ((draw >> 32 & 255) + 1);
	else if (mix(thread ^ (uint64_t)(number / STRETCH) << 16) % 4 == 0 && draw >> 16 & 1)
		ns = plan->patience_ns / SHORT;
	if (ns && may_wait(site))
		sleep_for(ns);
}

/* ------------------------------------------------------------ between the hooks and the handler */

static void before_lock(const void *object, void *site)
{
	/* relaxed: set once, to a function that is never unloaded */
	ptt_before_lock_t *next = __atomic_load_n(&before_lock_behind, __ATOMIC_RELAXED);

	if (plan->mode == PTT_STEER_MEET)
		come(object, site);
	else
		visit(site);
	if (next)
		next(object, site);
}

static void note_taken(const void *object, uint32_t site)
{
	if (self.count < PTT_STEER_HELD)
		self.held[self.count] = ((uint64_t)(uintptr_t)object & PTT_OBJECT_MASK) | (uint64_t)site << HELD_SITE_SHIFT;
	self.count++;
}

/* @counted: it counts even if it found no room */
static void note_free(const void *object, bool counted)
{
	uint64_t wanted = (uint64_t)(uintptr_t)object & PTT_OBJECT_MASK;
	uint32_t known = self.count < PTT_STEER_HELD ? self.count : PTT_STEER_HELD, i = known;

	while (i-- > 0) {
		if ((self.held[i] & PTT_OBJECT_MASK) != wanted)
			continue;
		memmove(&self.held[i], &self.held[i + 1], (known - i - 1) * sizeof(*self.held));
		self.count--;
		return;
	}
	/* one of the locks that found no room */
	if (counted && self.count > PTT_STEER_HELD)
		self.count--;
}

#define KIND(domain, name) (NPTL_DOMAIN_##domain << 6 | NPTL_EV_##name)

/* Keep the thread's locks up to date. @site: of the plan. Return: has the thread taken a lock that can be part of a cycle? */
static bool note(unsigned int kind, const struct nptl_trace_param *param, uint32_t site)
{
	switch (kind) {
	case KIND(MUTEX, MUTEX_TAKEN):
	case KIND(MUTEX, MUTEX_TAKEN_WAITED):
	case KIND(MUTEX, MUTEX_TAKEN_TRIED):
	case KIND(RWLOCK, RWLOCK_TAKEN_READ):
	case KIND(RWLOCK, RWLOCK_TAKEN_READ_WAITED):
	case KIND(RWLOCK, RWLOCK_TAKEN_READ_TRIED):
	case KIND(RWLOCK, RWLOCK_TAKEN_WRITE):
	case KIND(RWLOCK, RWLOCK_TAKEN_WRITE_WAITED):
	case KIND(RWLOCK, RWLOCK_TAKEN_WRITE_TRIED):
		note_taken(param->object, site);
		return true;
	case KIND(SEM, SEM_TAKEN):
	case KIND(SEM, SEM_TAKEN_WAITED):
		/* most semaphores are no locks: they are taken again and again, and never given back */
		if (site && !holds((uint64_t)(uintptr_t)param->object & PTT_OBJECT_MASK))
			note_taken(param->object, site);
		return site;
	case KIND(MUTEX, MUTEX_FREE):
	case KIND(MUTEX, MUTEX_FREE_AWAITED):
	case KIND(RWLOCK, RWLOCK_FREE):
		note_free(param->object, true);
		break;
	case KIND(SEM, SEM_POST):
	case KIND(SEM, SEM_POST_AWAITED):
		note_free(param->object, false);
		break;
	case KIND(SPIN, SPIN_TAKEN):
	case KIND(SPIN, SPIN_TAKEN_WAITED):
	case KIND(SPIN, SPIN_TAKEN_TRIED):
		self.spins++;
		break;
	case KIND(SPIN, SPIN_FREE):
		self.spins -= self.spins > 0;
		break;
	case KIND(THREAD, THREAD_BEGIN):
		self.serial = ((const struct nptl_trace_thread_begin *)param)->serial;
		break;
	}
	return false;
}

/*
 * Does the thread come to a point where a delay changes the order of threads? Only events that come before the action they
 * report: then the trace shows the delay before the action, too.
 */
static bool is_crossing(unsigned int kind)
{
	switch (kind) {
	case KIND(THREAD, THREAD_BEGIN):
	case KIND(THREAD, THREAD_JOIN_IN):
	case KIND(COND, COND_WAIT_IN):
	case KIND(COND, COND_TIMEDWAIT_IN):
	case KIND(COND, COND_CLOCKWAIT_IN):
	case KIND(COND, COND_SIGNAL):
	case KIND(COND, COND_BROADCAST):
	case KIND(BARRIER, BARRIER_WAIT_IN):
	case KIND(SEM, SEM_POST):
		return true;
	}
	return false;
}

static void getevent(struct nptl_trace_event event)
{
	unsigned int kind = (unsigned int)(uint8_t)event.domain << 6 | (uint8_t)event.event;
	const struct nptl_trace_param *param = event.param;
	bool own = event.source == NPTL_TRACE_SOURCE_NPTL && !ptt_upcalls.is_of_other_thread();
	uint32_t site = 0;
	bool taken = false;

	if (own && plan->mode == PTT_STEER_MEET && param->site)
		/* the locks of Python are semaphores */
		site = site_at(param->site, event.domain == NPTL_DOMAIN_SEM);
	if (own)
		taken = note(kind, param, site);
	if (own && plan->mode == PTT_STEER_RANDOM && is_crossing(kind))
		visit(param->site);
	behind.getevent(event);
	count_pass(site);
	if (site)
		ptt_meet_passed(plan, site);
	if (site && taken)
		stay(site, param->site);
}

void ptt_steer_begin(void)
{
	behind = ptt_receiver;
	module_behind = ptt_handler_module;
	ptt_handler_module = find_sites_in;
	ptt_receive(getevent, NULL);
	/* release: a thread that calls the function sees the plan */
	__atomic_store_n(&ptt_before_lock_is_tried, before_lock, __ATOMIC_RELEASE);
}
