/* SPDX-License-Identifier: GPL-2.0 */
/* Where virtual CPUs spend their time, and where tasks leave them: stacks, recorded in a file. */
#ifndef VTIME_SAMPLES_H
#define VTIME_SAMPLES_H

#include <stdint.h>

/**
 * struct samples_settings - what to record
 * @path: file to write, NULL for none
 * @interval_ns: CPU time between two samples of a CPU
 */
struct samples_settings {
	const char *path;
	uint64_t interval_ns;
};

int samples_start(const struct samples_settings *settings);
void samples_end(void);
void samples_cpu_starts(unsigned int cpu);
void samples_running(unsigned int cpu, uint64_t pc);
void samples_switch(unsigned int cpu);

#endif
