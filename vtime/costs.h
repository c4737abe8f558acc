/* SPDX-License-Identifier: GPL-2.0 */
/* What instructions cost, where it is not the same as any other. */
#ifndef VTIME_COSTS_H
#define VTIME_COSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t cost_of(const uint8_t *code, size_t size);
bool is_pause(const uint8_t *code, size_t size);

#endif
