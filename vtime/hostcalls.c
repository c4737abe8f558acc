// SPDX-License-Identifier: GPL-2.0
/*
 * What QEMU asks of its host, answered in virtual time.
 *
 * QEMU's virtual clock is CLOCK_MONOTONIC of the host, the guest's time-stamp counter is the host's, and timers are run by a
 * main loop that sleeps in ppoll() until the next one is due. This object is loaded ahead of the C library
 * (LD_PRELOAD), so that these calls of the main loop's thread and of the virtual CPUs come here; those of QEMU's
 * other threads (workers that read files) pass through. The time-stamp counter is a function of QEMU itself, which is
 * replaced: 1 GHz of virtual time, whatever the host has.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "clock.h"
#include "host.h"
#include "hostcalls.h"

enum { NONE = -1, MAIN_FDS = 1024, FILE_WAIT_NS = 50000, THREADS = 128 };
/* A jump this short is not worth a look at what QEMU's workers do. */
enum { SHORT_JUMP_NS = 50000 };

/* What a thread is to us: the main loop, a virtual CPU, or none of either. */
static __thread int my_cpu = NONE;
static __thread bool is_main;

static _Atomic bool on;
/* What the main loop polls while it waits: written by its thread while it works, read by others while it waits. */
static int main_fds[MAIN_FDS];
static _Atomic int n_main_fds;
/* The main loop's deadline counts from when it last read the clock; its thread only. */
static uint64_t main_read_ns;
/* Virtual CPUs' threads, which are not asked whether they work. */
static _Atomic pid_t cpu_threads[MAX_CPUS];
/* What each halted virtual CPU waits for; only compared. */
static _Atomic(pthread_cond_t *) halt_conditions[MAX_CPUS];
static _Atomic unsigned int threads_made;
static int state_fds[THREADS], n_state_fds;

static uint64_t my_now(void)
{
	if (my_cpu != NONE)
		return clock_cpu_now((unsigned int)my_cpu);
	return clock_main_now();
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	uint64_t ns;

	if (clock != CLOCK_MONOTONIC || !on || !(is_main || my_cpu != NONE))
		return (int)syscall(SYS_clock_gettime, clock, t);
	ns = my_now();
	if (is_main)
		main_read_ns = ns;
	t->tv_sec = (time_t)(ns / SECOND_NS);
	t->tv_nsec = (long)(ns % SECOND_NS);
	return 0;
}

/* Keep the state files of the threads that are neither the main loop nor a virtual CPU open, in state_fds. */
static void list_workers(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;

	while (n_state_fds)
		close(state_fds[--n_state_fds]);
	while (tasks && (entry = readdir(tasks)) && n_state_fds < THREADS) {
		pid_t thread = (pid_t)atoi(entry->d_name);
		bool is_other = thread <= 0 || thread == getpid();
		char path[64];
		int fd;

		for (int k = 0; k < MAX_CPUS; k++)
			is_other |= cpu_threads[k] == thread;
		snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
		fd = is_other ? -1 : open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			state_fds[n_state_fds++] = fd;
	}
	if (tasks)
		closedir(tasks);
}

/* Whether one of those works: then a file is being read or written. Called by the main loop's thread. */
static bool workers_work(void)
{
	static unsigned int listed;
	unsigned int made = threads_made;
	bool work = false;
	char state[256];

	if (listed != made)
		list_workers();
	listed = made;
	for (int k = 0; k < n_state_fds && !work; k++) {
		ssize_t size = pread(state_fds[k], state, sizeof(state) - 1, 0);
		char *after;

		state[size < 0 ? 0 : size] = 0;
		after = strrchr(state, ')');
		work = after && (after[2] == 'R' || after[2] == 'D');
	}
	return work;
}

static int real_ppoll(struct pollfd *fds, nfds_t n, int64_t timeout_ns, const sigset_t *mask)
{
	struct timespec t = { timeout_ns / SECOND_NS, timeout_ns % SECOND_NS };

	return (int)syscall(SYS_ppoll, fds, n, timeout_ns < 0 ? NULL : &t, mask, sizeof(long));
}

/* All CPUs are halted: let what QEMU's workers do end, it takes no virtual time, then go on at the deadline. */
static int pass_idle_time(struct pollfd *fds, nfds_t n, uint64_t until, const sigset_t *mask, bool *again)
{
	bool is_short = until < clock_main_now() + SHORT_JUMP_NS;
	int ready = real_ppoll(fds, n, 0, mask);

	while (!ready && !is_short && workers_work())
		ready = real_ppoll(fds, n, FILE_WAIT_NS, mask);
	*again = !ready && !clock_jump(until);
	return ready;
}

/* Wait as the main loop does: until a descriptor is ready, or virtual time has come to the timeout. */
static int main_loop_poll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	uint64_t until = NEVER;
	struct pollfd all[MAIN_FDS + 1];
	int ready;

	if (timeout)
		until = main_read_ns + (uint64_t)timeout->tv_sec * SECOND_NS + (uint64_t)timeout->tv_nsec;
	memcpy(all, fds, n * sizeof(*fds));
	all[n] = (struct pollfd){ .fd = wakes_fd(), .events = POLLIN };
	for (nfds_t k = 0; k < n; k++)
		main_fds[k] = fds[k].fd;
	n_main_fds = (int)n;
	for (;;) {
		enum main_turn turn = clock_main_waits(until);
		bool again = false;
		uint64_t drained;

		if (turn == MAIN_ALL_HALTED)
			ready = pass_idle_time(fds, n, until, mask, &again);
		else if (turn == MAIN_DUE)
			ready = real_ppoll(fds, n, 0, mask);
		if (turn != MAIN_WAITS && !again)
			break;
		if (turn != MAIN_WAITS)
			continue;
		ready = real_ppoll(all, n + 1, -1, mask);
		clock_main_runs();
		if (ready > 0 && all[n].revents) {
			(void)!read(all[n].fd, &drained, sizeof(drained));
			ready--;
		}
		if (ready) {
			for (nfds_t k = 0; k < n; k++)
				fds[k].revents = ready > 0 ? all[k].revents : 0;
			break;
		}
	}
	n_main_fds = 0;
	clock_main_runs();
	return ready;
}

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	bool waits = !timeout || timeout->tv_sec || timeout->tv_nsec;

	if (on && is_main && waits && n <= MAIN_FDS)
		return main_loop_poll(fds, n, timeout, mask);
	return real_ppoll(fds, n, timeout ? timeout->tv_sec * SECOND_NS + timeout->tv_nsec : -1, mask);
}

/* A virtual CPU gives the main loop work by writing to an event descriptor of it. */
ssize_t write(int fd, const void *data, size_t size)
{
	if (on && my_cpu != NONE)
		for (int k = 0; k < n_main_fds; k++)
			if (main_fds[k] == fd) {
				clock_main_runs();
				break;
			}
	return syscall(SYS_write, fd, data, size);
}

/*
 * A virtual CPU waits here while it is halted. Where the main loop does, or a CPU that is not halted, it is for other CPUs to leave
 * the code that they run: see clock.c.
 */
int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	static int (*real)(pthread_cond_t *, pthread_mutex_t *);
	bool halted = on && my_cpu != NONE && clock_cpu_is_halted((unsigned int)my_cpu);
	bool for_cpus = on && !halted && (is_main || my_cpu != NONE);
	int result;

	/* The version counts: the C library has an older function of this name, with another layout of the condition. */
	if (!real)
		*(void **)&real = dlvsym(RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.3.2");
	if (halted) {
		halt_conditions[my_cpu] = condition;
		clock_cpu_sleeps_on((unsigned int)my_cpu);
	}
	if (for_cpus)
		clock_gate_opens();
	result = real(condition, mutex);
	if (for_cpus)
		clock_gate_closes();
	return result;
}

/* How QEMU wakes a halted CPU. */
int pthread_cond_broadcast(pthread_cond_t *condition)
{
	static int (*real)(pthread_cond_t *);

	if (!real)
		*(void **)&real = dlvsym(RTLD_NEXT, "pthread_cond_broadcast", "GLIBC_2.3.2");
	for (int k = 0; on && k < MAX_CPUS; k++)
		if (halt_conditions[k] == condition)
			clock_cpu_wakes((unsigned int)k, my_cpu);
	return real(condition);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *data)
{
	static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	threads_made++;
	return real(thread, attributes, start, data);
}

/* In place of QEMU's cpu_get_tsc(), which reads the host's counter. */
static uint64_t virtual_tsc(void)
{
	return my_now();
}

/* Let QEMU's function for the guest's time-stamp counter be ours: a jump over its first instructions. */
static int replace_tsc(void)
{
	uint8_t jump[] = { 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0 };	/* mov $target,%rax; jmp *%rax */
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), target = (uintptr_t)virtual_tsc;
	uint8_t *function = dlsym(RTLD_DEFAULT, "cpu_get_tsc");
	uint8_t *start = (uint8_t *)((uintptr_t)function & -page);

	/* Functions begin at multiples of 16 bytes, so the jump covers no other one. */
	if (!function || (uintptr_t)function % 16 || mprotect(start, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC))
		return -1;
	memcpy(jump + 2, &target, sizeof(target));
	memcpy(function, jump, sizeof(jump));
	return mprotect(start, 2 * page, PROT_READ | PROT_EXEC);
}

/**
 * hostcalls_are_virtual - from now on, answer in virtual time; called by the thread of the main loop
 *
 * Return: 0, or -1 where QEMU's function for the time-stamp counter cannot be replaced.
 */
int hostcalls_are_virtual(void)
{
	is_main = true;
	wakes_setup();
	if (replace_tsc())
		return -1;
	on = true;
	return 0;
}

/** hostcalls_of_cpu - this thread is a virtual CPU */
void hostcalls_of_cpu(unsigned int cpu)
{
	my_cpu = (int)cpu;
	cpu_threads[cpu] = (pid_t)syscall(SYS_gettid);
}
