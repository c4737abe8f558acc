// SPDX-License-Identifier: GPL-2.0
/*
 * loop INSTRUCTIONS CPUS: a loop of known length on each of the first CPUs at once; the ns it took on each, one a line.
 *
 * Before the loop begins it prints "begin", and after all have ended "end": by them the host sees what it costs.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "clock.h"

enum { MAX_CPUS = 64 };

static uint64_t rounds;
static pthread_barrier_t start;
static int64_t took_ns[MAX_CPUS];

static void *run(void *number)
{
	long cpu = (long)number;
	int64_t begin;

	pin(cpu);
	pthread_barrier_wait(&start);
	begin = now_ns();
	spend(rounds);
	took_ns[cpu] = now_ns() - begin;
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[MAX_CPUS];
	long cpus;

	if (argc != 3 || (rounds = strtoull(argv[1], NULL, 10) / 2) == 0 || (cpus = atol(argv[2])) < 1 ||
	    cpus > MAX_CPUS) {
		fprintf(stderr, "usage: loop INSTRUCTIONS CPUS\n");
		return 2;
	}
	setlinebuf(stdout);
	pthread_barrier_init(&start, NULL, cpus);
	puts("begin");
	for (long cpu = 0; cpu < cpus; cpu++)
		if (pthread_create(&threads[cpu], NULL, run, (void *)cpu))
			fail("pthread_create");
	for (long cpu = 0; cpu < cpus; cpu++)
		pthread_join(threads[cpu], NULL);
	puts("end");
	for (long cpu = 0; cpu < cpus; cpu++)
		printf("%lld\n", (long long)took_ns[cpu]);
	return 0;
}
