/* SPDX-License-Identifier: GPL-2.0 */
/* Where and for how long virtual CPUs stall, decided by a seed. */
#ifndef VTIME_STALLS_H
#define VTIME_STALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct stalls_settings - what the stalls are decided by
 * @seed: another one is other places, and other passes over them
 * @path: file with the addresses, see stalls.c; NULL: no CPU ever stalls
 */
struct stalls_settings {
	uint64_t seed;
	const char *path;
};

int stalls_start(const struct stalls_settings *settings);
bool stalls_in_code(uint64_t pc);
bool stalls_at_block(uint64_t pc);
bool stalls_at_call(uint64_t pc, const uint8_t *code, size_t size);
uint64_t stalls_pass(unsigned int cpu, uint64_t now_ns);

#endif
