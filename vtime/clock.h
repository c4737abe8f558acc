/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Virtual time: a clock for each virtual CPU, which its own instructions move on, and the rule that keeps them together.
 *
 * Times are in ns since the start of the guest. All functions may be called from any thread unless they say otherwise.
 */
#ifndef VTIME_CLOCK_H
#define VTIME_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define MAX_CPUS 256
#define NEVER UINT64_MAX
/* A virtual CPU's counter at which it has to come to clock_wait(). */
#define COUNT_END (UINT64_C(1) << 62)

/**
 * struct clock_settings - what can be chosen
 * @quantum_ns: how long a CPU runs before another one gets the host's CPU, and how far one may be ahead of another
 *	(twice that where several run at once)
 * @mips: instructions a CPU executes in a microsecond
 * @pause: instructions that a PAUSE stands for
 * @lanes: most CPUs that run at once; no more do than this process may use of the host
 */
struct clock_settings {
	uint64_t quantum_ns;
	uint64_t mips;
	uint64_t pause;
	uint64_t lanes;
};

void clock_setup(const struct clock_settings *settings);
void clock_report(const char *path);

/* Called by the thread of a virtual CPU. */
void clock_cpu_counts(unsigned int cpu, uint64_t *count);
void clock_cpu_starts(unsigned int cpu);
void clock_cpu_halts(unsigned int cpu);
void clock_cpu_sleeps_on(unsigned int cpu);
void clock_cpu_resumes(unsigned int cpu);
void clock_wait(unsigned int cpu);
void clock_pause(unsigned int cpu);
void clock_stall(unsigned int cpu, uint64_t ns);
uint64_t clock_cpu_now(unsigned int cpu);
uint64_t clock_cpu_used(unsigned int cpu);
bool clock_spins(unsigned int cpu);

/* Called by the thread of QEMU's main loop, which runs the timers of all devices. */
uint64_t clock_main_now(void);
enum main_turn { MAIN_DUE, MAIN_ALL_HALTED, MAIN_WAITS };
enum main_turn clock_main_waits(uint64_t deadline);
bool clock_jump(uint64_t deadline);

/* Called by any thread. */
void clock_cpu_wakes(unsigned int cpu, int waker);
void clock_main_runs(void);

/* Around a wait of the main loop or of a running virtual CPU that another virtual CPU has to end. */
void clock_gate_opens(void);
void clock_gate_closes(void);
bool clock_cpu_is_halted(unsigned int cpu);

#endif
