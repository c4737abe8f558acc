// SPDX-License-Identifier: GPL-2.0
/*
 * handover KIND CPUS TIMES: threads on CPUs of their own take a lock in turn, so many times in all; prints the ns each took.
 *
 * KIND is "round" (one thread after the other, each in its turn), "ticket" (in the order in which they came) or "spin"
 * (whoever is first); all wait with PAUSE. The lock is held for 200 instructions and left alone for 2 to 398, at random:
 * with a fixed time the threads would keep the phase in which they started, and each start would have a figure of its own.
 * The first tenth does not count: the threads start one by one.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "clock.h"

enum { MAX_CPUS = 64, HALF_OF_200 = 100 };

static enum { ROUND, TICKET, SPIN, KINDS } kind;
static const char *const names[KINDS] = { "round", "ticket", "spin" };
static long cpus, times, first;
static pthread_barrier_t start;
static _Atomic unsigned int taken;		/* of spin */
static _Atomic unsigned int next, served;	/* of ticket */
static long taken_times;			/* under the lock */
static int64_t begin_ns, end_ns;

/* Mean HALF_OF_200, from a generator whose upper bits are good enough (Numerical Recipes' quick one). */
static uint64_t half_of_rest(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return 1 + (*state >> 16) % (2 * HALF_OF_200 - 1);
}

static void take(long cpu)
{
	unsigned int mine;

	switch (kind) {
	case ROUND:
		while (atomic_load(&served) % cpus != cpu)
			__builtin_ia32_pause();
		break;
	case TICKET:
		mine = atomic_fetch_add(&next, 1);
		while (atomic_load(&served) != mine)
			__builtin_ia32_pause();
		break;
	default:
		while (atomic_exchange(&taken, 1))
			while (atomic_load(&taken))
				__builtin_ia32_pause();
	}
}

static void give(void)
{
	if (kind == SPIN)
		atomic_store_explicit(&taken, 0, memory_order_release);
	else
		atomic_store_explicit(&served, served + 1, memory_order_release);
}

static void *run(void *number)
{
	long cpu = (long)number;
	uint32_t state = cpu;
	int more = 1;

	pin(cpu);
	pthread_barrier_wait(&start);
	while (more) {
		take(cpu);
		if (taken_times == first)
			begin_ns = now_ns();
		if (taken_times == times)
			end_ns = now_ns();
		spend(HALF_OF_200);
		more = taken_times++ < times;
		give();
		spend(half_of_rest(&state));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[MAX_CPUS];

	while (argc > 1 && kind < KINDS && strcmp(argv[1], names[kind]))
		kind++;
	if (argc != 4 || kind == KINDS || (cpus = atol(argv[2])) < 1 || cpus > MAX_CPUS || (times = atol(argv[3])) < 10) {
		fprintf(stderr, "usage: handover round|ticket|spin CPUS TIMES\n");
		return 2;
	}
	first = times / 10;
	pthread_barrier_init(&start, NULL, cpus);
	for (long cpu = 0; cpu < cpus; cpu++)
		if (pthread_create(&threads[cpu], NULL, run, (void *)cpu))
			fail("pthread_create");
	for (long cpu = 0; cpu < cpus; cpu++)
		pthread_join(threads[cpu], NULL);
	printf("%.2f\n", (double)(end_ns - begin_ns) / (times - first));
	return 0;
}
