// SPDX-License-Identifier: GPL-2.0
/* The host's clock, and an event descriptor that the main loop polls beside its own while it waits. */
#define _GNU_SOURCE
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "host.h"

static int wake_fd;

/** host_ns - read the monotonic clock of the host */
uint64_t host_ns(void)
{
	struct timespec t;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

/** wakes_setup - be ready to wake the main loop; before any CPU is there */
void wakes_setup(void)
{
	wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

/** wakes_fd - return the descriptor that becomes readable when the main loop shall wake up */
int wakes_fd(void)
{
	return wake_fd;
}

/** wake_main_loop - end the main loop's wait */
void wake_main_loop(void)
{
	uint64_t one = 1;

	(void)!syscall(SYS_write, wake_fd, &one, sizeof(one));
}
