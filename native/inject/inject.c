/* SPDX-License-Identifier: MIT */
/* inject.c - stops a thread, has it run the instructions of stub.S, and lets it continue. */
#include "inject.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#include "stub.h"

uint32_t ptt_inject_abi(void)
{
	return PTT_INJECT_ABI;
}

static int read_memory(int32_t tid, uint64_t from, void *to, size_t size)
{
	struct iovec local = {.iov_base = to, .iov_len = size}, remote = {.iov_base = (void *)(uintptr_t)from, .iov_len = size};

	return process_vm_readv(tid, &local, 1, &remote, 1, 0) == (ssize_t)size ? 0 : -EFAULT;
}

int ptt_injected_look(int32_t pid, struct ptt_injected *done)
{
	uint64_t at = done->memory + PTT_STUB_CODE;
	uint32_t status_error[2];
	int err = read_memory(pid, at + offsetof(struct ptt_stub, status), status_error, sizeof(status_error));

	if (err)
		return err;
	done->status = status_error[0];
	done->error = (int32_t)status_error[1];
	if (done->status == PTT_INJECT_REFUSED)
		err = read_memory(pid, at + offsetof(struct ptt_stub, reason), done->text, sizeof(done->text));
	done->text[sizeof(done->text) - 1] = '\0';
	return err;
}

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/missing.h"

#define SYSCALL_STOP (SIGTRAP | 0x80)
#define EVENT_OF(status) ((status) >> 16)
/*
 * A thread that does not stop within this time is in a call that cannot be interrupted. It cannot continue before it
 * stops, so callers wait no longer.
 */
#define PATIENCE_NS UINT64_C(10000000000)
#define LOOK_NS 1000000L
#define USER_CS 0x33u
/* Results of calls that the kernel restarts (include/linux/errno.h). No program sees them. */
#define RESTART_FIRST 512
#define RESTART_LAST 516
/* struct rt_sigframe from its ucontext on, offsets in words: flags, link, stack, registers, floating point state, mask */
#define UC_FLAGS 0
#define UC_REGISTERS 5
#define UC_FLOATS 28
#define UC_MASK 37
#define UC_ALL_VALID 7u /* the floating point state is extended; restore the stack segment */
/* x87, SSE, AVX, AVX-512, protection keys: the parts that the kernel saves without a request from the program */
#define FLOAT_PARTS UINT64_C(0x2e7)
#define FLOATS_OF_OLD 576u /* bytes of x87 and SSE and of the header */
#define SOFTWARE_BYTES 464
#define MAGIC_BEGIN 0x46505853u
#define MAGIC_END 0x46505845u

struct stopped {
	int32_t tid;
	struct user_regs_struct before;
	uint64_t mask;
	int signal;	/* arrived meanwhile; delivered when the thread continues */
	uint64_t began; /* when the stop was requested */
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* ------------------------------------------------------------ the floating point state */

/* Bytes of all parts in the uncompacted form (Intel SDM volume 1, 13.4); 0 if the processor lacks a part. */
static uint32_t size_of_floats(uint64_t parts)
{
	uint32_t a, b, c, d, size = FLOATS_OF_OLD;

	for (uint32_t i = 2; i < 32; i++) {
		if (!(parts >> i & 1))
			continue;
		if (!__get_cpuid_count(0xd, i, &a, &b, &c, &d) || !a)
			return 0;
		size = b + a > size ? b + a : size;
	}
	return size;
}

static bool find_floats(uint64_t *parts, uint32_t *size)
{
	uint32_t a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return false;
	__asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
	*parts = ((uint64_t)d << 32 | a) & FLOAT_PARTS;
	*size = size_of_floats(*parts);
	return *size && *size + sizeof(uint32_t) <= PTT_STUB_FLOATS;
}

/* Fill the bytes that the processor reserves for software, as the kernel expects them (struct _fpx_sw_bytes). */
static void describe_floats(struct ptt_stub *stub, uint64_t parts, uint32_t size)
{
	const uint32_t magic = MAGIC_END;
	struct {
		uint32_t magic, extended_size;
		uint64_t parts;
		uint32_t size;
	} software = {MAGIC_BEGIN, size + (uint32_t)sizeof(magic), parts, size};

	memcpy(stub->state + SOFTWARE_BYTES, &software, sizeof(software));
	memcpy(stub->state + size, &magic, sizeof(magic));
	stub->floats = parts;
}

/* ------------------------------------------------------------ restarting the system call */

/*
 * A stop ends the system call that the thread slept in. The kernel restarts most calls, but not if the program
 * counter has changed. Waits for events end with EINTR, which their callers need not expect.
 */
static struct user_regs_struct resumed(const struct user_regs_struct *before)
{
	struct user_regs_struct r = *before;
	int64_t result = (int64_t)r.rax;

	if (result == -EINTR || (result <= -RESTART_FIRST && result >= -RESTART_LAST)) {
		r.rax = r.orig_rax;
		r.rip -= 2;
	}
	r.orig_rax = (unsigned long long)-1;
	return r;
}

/* ------------------------------------------------------------ stopping */

/* Wait for the next stop. Return: its status, -ESRCH if the thread has ended, -EBUSY if it takes too long. */
static int next_stop(int32_t tid)
{
	const struct timespec moment = {.tv_nsec = LOOK_NS};
	uint64_t until = now_ns() + PATIENCE_NS;
	sigset_t stops;
	int status;

	sigemptyset(&stops);
	sigaddset(&stops, SIGCHLD);
	for (;;) {
		pid_t done = waitpid(tid, &status, __WALL | WNOHANG);

		if (done < 0)
			return -ESRCH;
		if (done > 0)
			return WIFSTOPPED(status) ? status : -ESRCH;
		if (now_ns() > until)
			return -EBUSY;
		/* SIGCHLD announces a stop, unless the process ignores it; all signals are blocked */
		sigtimedwait(&stops, NULL, &moment);
	}
}

static void detach(int32_t tid, int number)
{
	ptrace(PTRACE_DETACH, tid, NULL, (void *)(long)number);
}

/* Stop the thread, wherever it is. */
static int stop(struct stopped *s)
{
	int status;

	s->began = now_ns();
	if (ptrace(PTRACE_SEIZE, s->tid, NULL, (void *)(long)PTRACE_O_TRACESYSGOOD) < 0)
		return -errno;
	ptrace(PTRACE_INTERRUPT, s->tid, NULL, NULL);
	status = next_stop(s->tid);
	if (status < 0)
		return status;
	/* the thread is about to take a signal, or the whole process is stopped: do not inject now */
	if (EVENT_OF(status) != PTRACE_EVENT_STOP || WSTOPSIG(status) != SIGTRAP) {
		detach(s->tid, EVENT_OF(status) ? 0 : WSTOPSIG(status));
		return -EAGAIN;
	}
	return 0;
}

/* Does the thread sleep where the caller saw it? */
static bool is_at_wanted(const struct stopped *s, const struct ptt_inject *wanted)
{
	const struct user_regs_struct *r = &s->before;
	uint8_t code[2];

	return r->rip == wanted->pc && r->rsp == wanted->sp && r->orig_rax == wanted->number &&
	       (!wanted->fp || r->rbp == wanted->fp) && r->cs == USER_CS &&
	       read_memory(wanted->tid, r->rip - 2, code, sizeof(code)) == 0 && code[0] == 0x0f && code[1] == 0x05;
}

/* Let the thread continue; nothing in it was changed. */
static void leave_alone(const struct stopped *s)
{
	struct user_regs_struct r = resumed(&s->before);
	uint64_t call = s->before.orig_rax;

	if ((call == SYS_epoll_wait || call == SYS_epoll_pwait || call == SYS_epoll_pwait2) && (int64_t)s->before.rax == -EINTR)
		ptrace(PTRACE_SETREGS, s->tid, NULL, &r);
	detach(s->tid, 0);
}

/* Undo the system calls that the thread made for us, and let it continue. */
static void put_back(const struct stopped *s)
{
	struct user_regs_struct r = resumed(&s->before);

	ptrace(PTRACE_SETREGS, s->tid, NULL, &r);
	ptrace(PTRACE_SETSIGMASK, s->tid, (void *)sizeof(s->mask), &s->mask);
	detach(s->tid, s->signal);
}

/* ------------------------------------------------------------ system calls */

/* Have the thread make a system call. Return: the result; -EAGAIN if a signal interrupted it. */
static int64_t call(struct stopped *s, uint64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e)
{
	struct user_regs_struct r = s->before;

	r.rip -= 2;
	r.orig_rax = (unsigned long long)-1;
	r.rax = number;
	r.rdi = a;
	r.rsi = b;
	r.rdx = c;
	r.r10 = d;
	r.r8 = e;
	r.r9 = 0;
	if (ptrace(PTRACE_SETREGS, s->tid, NULL, &r) < 0)
		return -errno;
	for (int i = 0; i < 2; i++) { /* stops at entry and at exit */
		int status;

		if (ptrace(PTRACE_SYSCALL, s->tid, NULL, NULL) < 0)
			return -errno;
		status = next_stop(s->tid);
		if (status < 0)
			return status;
		if (WSTOPSIG(status) != SYSCALL_STOP) {
			/* SIGSTOP, which cannot be blocked */
			s->signal = EVENT_OF(status) ? 0 : WSTOPSIG(status);
			return -EAGAIN;
		}
	}
	if (ptrace(PTRACE_GETREGS, s->tid, NULL, &r) < 0)
		return -errno;
	return (int64_t)r.rax;
}

/* ------------------------------------------------------------ the data of the stub */

/* The registers that rt_sigreturn(2) restores, in the kernel's order. */
static void fill_frame(struct ptt_stub *stub, const struct stopped *s, uint64_t data)
{
	const struct user_regs_struct r = resumed(&s->before);
	const uint64_t registers[] = {
		r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rdi, r.rsi, r.rbp, r.rbx, r.rdx, r.rax, r.rcx,
		r.rsp, r.rip, r.eflags, (r.cs & 0xffff) | (r.ss & 0xffff) << 48,
	};

	stub->frame[UC_FLAGS] = UC_ALL_VALID;
	memcpy(stub->frame + UC_REGISTERS, registers, sizeof(registers));
	stub->frame[UC_FLOATS] = data + offsetof(struct ptt_stub, state);
	stub->frame[UC_MASK] = s->mask;
}

static int fill(struct ptt_stub *stub, const struct stopped *s, const struct ptt_inject *wanted, uint64_t memory)
{
	uint64_t parts;
	uint32_t size;

	if (!find_floats(&parts, &size))
		return -ENOTSUP;
	if (strlen(wanted->library) >= sizeof(stub->library) || strlen(wanted->function) >= sizeof(stub->function) ||
	    strlen(wanted->text) >= sizeof(stub->text))
		return -ENAMETOOLONG;
	memset(stub, 0, sizeof(*stub));
	stub->create = wanted->create;
	stub->detach = wanted->detach;
	stub->dlopen = wanted->dlopen;
	stub->dlsym = wanted->dlsym;
	stub->dlerror = wanted->dlerror;
	stub->munmap = wanted->munmap;
	stub->memory = memory;
	stub->size = PTT_STUB_SIZE;
	/* the C library cancels threads and changes users by signals of its own; these must reach every thread */
	stub->mask = ~(UINT64_C(1) << 31 | UINT64_C(1) << 32);
	strcpy(stub->library, wanted->library);
	strcpy(stub->function, wanted->function);
	strcpy(stub->text, wanted->text);
	describe_floats(stub, parts, size);
	fill_frame(stub, s, memory + PTT_STUB_CODE);
	return 0;
}

/*
 * Writes also to pages that the process may not write: the kernel permits that to the tracer of the thread (proc(5),
 * /proc/pid/mem).
 */
static int write_memory(int32_t tid, uint64_t to, const void *from, size_t size)
{
	char name[32];
	int fd, err = 0;

	snprintf(name, sizeof(name), "/proc/%d/mem", tid);
	fd = open(name, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (pwrite(fd, from, size, (off_t)to) != (ssize_t)size)
		err = -EFAULT;
	close(fd);
	return err;
}

static int64_t map(struct stopped *s, uint64_t protection)
{
	return call(s, SYS_mmap, 0, PTT_STUB_SIZE, protection, MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1);
}

/*
 * Map the memory and fill it; its first page is code. Each system call stops the thread twice, and that takes long on
 * a busy machine. So all the memory is writable code at first, and the stub restricts it. If the system forbids
 * writable code, all the memory is read-only code at first, and mprotect(2) makes the data writable.
 */
static int prepare(struct stopped *s, const struct ptt_inject *wanted, struct ptt_injected *done)
{
	static struct ptt_stub stub;
	int64_t at = map(s, PROT_READ | PROT_WRITE | PROT_EXEC);
	bool is_writable = at >= 0;
	int err;

	if (at == -EACCES || at == -EPERM)
		at = map(s, PROT_READ | PROT_EXEC);
	if (at < 0)
		return (int)at;
	done->memory = (uint64_t)at;
	done->size = PTT_STUB_SIZE;
	err = fill(&stub, s, wanted, done->memory);
	if (!err)
		err = write_memory(s->tid, done->memory, ptt_stub_begin, (size_t)(ptt_stub_end - ptt_stub_begin));
	if (!err)
		err = write_memory(s->tid, done->memory + PTT_STUB_CODE, &stub, sizeof(stub));
	if (!err && !is_writable)
		err = (int)call(s, SYS_mprotect, done->memory + PTT_STUB_CODE, PTT_STUB_SIZE - PTT_STUB_CODE,
				PROT_READ | PROT_WRITE, 0, 0);
	if (err && err != -ESRCH && call(s, SYS_munmap, done->memory, PTT_STUB_SIZE, 0, 0, 0) == 0)
		done->memory = 0;
	return err;
}

static int begin(const struct stopped *s, const struct ptt_injected *done)
{
	struct user_regs_struct r = s->before;

	r.rip = done->memory;
	r.rsp = done->memory + PTT_STUB_SIZE;
	r.r15 = done->memory + PTT_STUB_CODE;
	r.orig_rax = (unsigned long long)-1;
	return ptrace(PTRACE_SETREGS, s->tid, NULL, &r) < 0 ? -errno : 0;
}

/* Stop the thread if it sleeps where the caller saw it. */
static int stop_at_wanted(struct stopped *s, const struct ptt_inject *wanted)
{
	int err = stop(s);

	if (err)
		return err;
	if (ptrace(PTRACE_GETREGS, s->tid, NULL, &s->before) < 0) {
		detach(s->tid, 0);
		return -EAGAIN;
	}
	if (!is_at_wanted(s, wanted) || ptrace(PTRACE_GETSIGMASK, s->tid, (void *)sizeof(s->mask), &s->mask) < 0) {
		leave_alone(s);
		return -EAGAIN;
	}
	return 0;
}

/* ------------------------------------------------------------ the helper process */

#define STACK_SIZE 65536u

struct task {
	int (*work)(struct task *task);
	struct stopped s;
	const struct ptt_inject *wanted;
	struct ptt_injected *done;
	struct ptt_kept *kept;
	int result;
};

static int do_task(void *arg)
{
	struct task *task = arg;

	setsid();
	task->result = task->work(task);
	return 0;
}

/*
 * Run the task in a helper process that shares our memory. While a thread makes system calls for us, its tracer must
 * not end: the thread would continue with the result of our call. The helper continues if this process or its process
 * group is killed.
 */
static int run_in_helper(struct task *task)
{
	char *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigset_t all, before;
	int child, err = 0;

	if (stack == MAP_FAILED)
		return -errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	child = clone(do_task, stack + STACK_SIZE, CLONE_VM | CLONE_VFORK, task);
	if (child < 0)
		err = -errno;
	else
		waitpid(child, NULL, __WALL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	munmap(stack, STACK_SIZE);
	return err ? err : task->result;
}

static int look_at_registers(struct task *task)
{
	const struct user_regs_struct *r = &task->s.before;
	int err = stop_at_wanted(&task->s, task->wanted);

	if (err)
		return err;
	*task->kept = (struct ptt_kept){r->rbx, r->rbp, r->r12, r->r13, r->r14, r->r15};
	leave_alone(&task->s);
	return 0;
}

static int inject(struct task *task)
{
	const uint64_t all = ~UINT64_C(0);
	struct stopped *s = &task->s;
	int err = stop_at_wanted(s, task->wanted);

	if (!err) {
		if (ptrace(PTRACE_SETSIGMASK, s->tid, (void *)sizeof(all), &all) < 0)
			err = -errno;
		if (!err)
			err = prepare(s, task->wanted, task->done);
		if (!err)
			err = begin(s, task->done);
		if (err)
			put_back(s);
		else
			detach(s->tid, 0);
	}
	task->done->stopped_ns = s->began ? now_ns() - s->began : 0;
	return err;
}

int ptt_inject_registers(const struct ptt_inject *wanted, struct ptt_kept *kept)
{
	struct task task = {.work = look_at_registers, .s = {.tid = wanted->tid}, .wanted = wanted, .kept = kept};

	return run_in_helper(&task);
}

int ptt_inject(const struct ptt_inject *wanted, struct ptt_injected *done)
{
	struct task task = {.work = inject, .s = {.tid = wanted->tid}, .wanted = wanted, .done = done};

	memset(done, 0, sizeof(*done));
	return run_in_helper(&task);
}
#else
int ptt_inject(const struct ptt_inject *wanted, struct ptt_injected *done)
{
	(void)wanted;
	memset(done, 0, sizeof(*done));
	return -ENOTSUP;
}

int ptt_inject_registers(const struct ptt_inject *wanted, struct ptt_kept *kept)
{
	(void)wanted;
	memset(kept, 0, sizeof(*kept));
	return -ENOTSUP;
}
#endif
