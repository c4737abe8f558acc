/* SPDX-License-Identifier: GPL-2.0 */
/* Numbers that look random and are the same in each run. */
#ifndef VTIME_MIX_H
#define VTIME_MIX_H

#include <stdint.h>

/* SplitMix64 (Steele, Lea, Flood 2014): the value of a generator that has been seeded by @number. */
static inline uint64_t mix(uint64_t number)
{
	number += 0x9e3779b97f4a7c15;
	number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
	number = (number ^ number >> 27) * 0x94d049bb133111eb;
	return number ^ number >> 31;
}

#endif /* VTIME_MIX_H */
