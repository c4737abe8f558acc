/* SPDX-License-Identifier: GPL-2.0 */
/* What the programs that judge the guest's clock share. */
#ifndef CLOCK_H
#define CLOCK_H

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline void fail(const char *what)
{
	perror(what);
	exit(1);
}

static inline int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Keep this thread on one CPU. */
static inline void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("sched_setaffinity");
}

/* Take 2 * rounds instructions, whatever the compiler thinks of it. */
static inline void spend(uint64_t rounds)
{
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(rounds) : : "cc");
}

#endif
