// SPDX-License-Identifier: GPL-2.0
/*
 * The clocks of vtime/clock.c with threads for CPUs that execute nothing but their count: clock TEST CPUS [MIPS [HELD]].
 * Prints "NAME VALUE" lines; tests/unit/test_virtual_time.py says what they must be.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../../../vtime/clock.h"

enum { BLOCK = 7, LENGTH = 400000, QUANTUM = 2000, PAUSE = 140, ROUNDS = 200, STALL = 100000, TURNS = 100 };

static struct {
	uint64_t count;
	_Atomic uint64_t executed;	/* NEVER once it has halted */
	uint64_t turns[TURNS];		/* instructions of the first ones */
	int n_turns;
	uint64_t ended_ns;
	char line[64];
} cpus[MAX_CPUS];

static int n;
static uint64_t held = 1500;		/* by spin, instructions */
static _Atomic uint64_t furthest_ahead;
static _Atomic int turn, releases, woken;
static uint64_t released_ns, latest_ns;
static pthread_barrier_t all;

uint64_t host_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void wake_main_loop(void)
{
	woken++;
}

/* Let the others have their turn. */
static void end_turn(int cpu)
{
	int ended = cpus[cpu].n_turns++;

	clock_wait((unsigned int)cpu);
	if (ended < TURNS)
		cpus[cpu].turns[ended] = COUNT_END - cpus[cpu].count;
}

static void execute(int cpu, uint64_t instructions)
{
	for (uint64_t done = 0; done < instructions; done += BLOCK) {
		cpus[cpu].count += BLOCK;
		if (cpus[cpu].count >= COUNT_END)
			end_turn(cpu);
		cpus[cpu].executed += BLOCK;
	}
}

/* Each CPU executes as much as the others, and looks how far it is ahead of the last one. */
static void *even(void *index)
{
	int cpu = (int)(intptr_t)index;

	clock_cpu_starts((unsigned int)cpu);
	pthread_barrier_wait(&all);
	for (int k = 0; k < LENGTH / 100; k++) {
		execute(cpu, 100);
		for (int other = 0; other < n; other++) {
			uint64_t theirs = cpus[other].executed, mine = cpus[cpu].executed;

			if (theirs < mine && mine - theirs > furthest_ahead)
				furthest_ahead = mine - theirs;
		}
	}
	cpus[cpu].executed = NEVER;
	cpus[cpu].ended_ns = clock_cpu_now((unsigned int)cpu);
	clock_cpu_halts((unsigned int)cpu);
	return NULL;
}

/* CPU 0 holds a lock; the others spin until they see it released, and note how late they are. */
static void *spin(void *index)
{
	int cpu = (int)(intptr_t)index;

	clock_cpu_starts((unsigned int)cpu);
	pthread_barrier_wait(&all);
	for (int round = 1; round <= ROUNDS; round++) {
		if (cpu == 0) {
			execute(cpu, held);
			released_ns = clock_cpu_now(0);
			releases = round;
		} else {
			while (releases < round)
				clock_pause((unsigned int)cpu);
			if (cpu == 1 && clock_cpu_now(1) > released_ns && clock_cpu_now(1) - released_ns > latest_ns)
				latest_ns = clock_cpu_now(1) - released_ns;
		}
		/* What follows is another spin, not the same one going on. */
		execute(cpu, held / 10);
		/* The next round begins when everybody is through with this one. */
		turn++;
		while (turn < round * n)
			clock_pause((unsigned int)cpu);
	}
	clock_cpu_halts((unsigned int)cpu);
	return NULL;
}

/* CPU 0 stalls: how far the others are when it goes on. */
static void *stall(void *index)
{
	int cpu = (int)(intptr_t)index;

	clock_cpu_starts((unsigned int)cpu);
	pthread_barrier_wait(&all);
	/* From here on it has its turn. */
	execute(cpu, BLOCK);
	if (cpu == 0) {
		clock_stall(0, STALL);
		for (int other = 1; other < n; other++)
			printf("others %" PRIu64 "\n", (uint64_t)cpus[other].executed);
	}
	execute(cpu, LENGTH - BLOCK);
	cpus[cpu].ended_ns = clock_cpu_now((unsigned int)cpu);
	clock_cpu_halts((unsigned int)cpu);
	return NULL;
}

static void run(void *(*function)(void *))
{
	pthread_t threads[MAX_CPUS];

	pthread_barrier_init(&all, NULL, (unsigned int)n);
	for (intptr_t k = 0; k < n; k++) {
		clock_cpu_counts((unsigned int)k, &cpus[k].count);
		pthread_create(&threads[k], NULL, function, (void *)k);
	}
	clock_main_waits(NEVER);
	for (int k = 0; k < n; k++)
		pthread_join(threads[k], NULL);
}

/* A deadline: time stops there until the main loop has run, and jumps there when nobody executes. */
static void deadlines(void)
{
	clock_cpu_counts(0, &cpus[0].count);
	clock_cpu_starts(0);
	clock_main_waits(5001);
	execute(0, 2000);
	printf("early %d\n", woken);
	clock_cpu_halts(0);
	printf("halted_turn %d\n", clock_main_waits(9000001) == MAIN_ALL_HALTED);
	printf("jumped %d\n", clock_jump(9000001));
	printf("after_jump_ns %" PRIu64 "\n", clock_main_now());
	clock_main_waits(NEVER);
	clock_cpu_resumes(0);
	printf("resumed_ns %" PRIu64 "\n", clock_cpu_now(0));
	printf("no_jump %d\n", clock_jump(99000000));
	printf("due_turn %d\n", clock_main_waits(9000001) == MAIN_DUE);
}

/* A CPU that stalls leaves when the gate opens, and stalls on when it is closed. */
static void gate(void)
{
	clock_cpu_counts(0, &cpus[0].count);
	clock_cpu_starts(0);
	clock_main_waits(NEVER);
	execute(0, BLOCK);
	clock_gate_opens();
	clock_main_runs();
	clock_stall(0, STALL);
	printf("left_ns %" PRIu64 "\n", clock_cpu_now(0));
	clock_main_waits(NEVER);
	clock_gate_closes();
	execute(0, BLOCK);
	printf("ended_ns %" PRIu64 "\n", clock_cpu_now(0));
}

int main(int argc, char **argv)
{
	struct clock_settings settings = { QUANTUM, 1000, PAUSE, MAX_CPUS };

	n = argc > 2 ? atoi(argv[2]) : 1;
	if (argc > 3)
		settings.mips = strtoull(argv[3], NULL, 10);
	clock_setup(&settings);
	if (!strcmp(argv[1], "even")) {
		run(even);
		printf("furthest_ahead %" PRIu64 "\n", furthest_ahead);
		for (int k = 0; k < n; k++)
			printf("ended_ns %" PRIu64 "\n", cpus[k].ended_ns);
		for (int k = 0; k < cpus[0].n_turns && k < TURNS; k++)
			printf("turn %" PRIu64 "\n", cpus[0].turns[k]);
	} else if (!strcmp(argv[1], "spin")) {
		if (argc > 4)
			held = strtoull(argv[4], NULL, 10);
		run(spin);
		printf("latest_ns %" PRIu64 "\n", latest_ns);
	} else if (!strcmp(argv[1], "stall")) {
		run(stall);
		for (int k = 0; k < n; k++)
			printf("ended_ns %" PRIu64 "\n", cpus[k].ended_ns);
	} else if (!strcmp(argv[1], "gate")) {
		gate();
	} else {
		deadlines();
	}
	return 0;
}
