// SPDX-License-Identifier: GPL-2.0
/*
 * Schedules that hardly ever happen by themselves: a CPU stalls at some place of the code while the others go on.
 *
 * The places are in code that a file names, a line each: "code START END" are addresses of a function, "boundary START" is the
 * first instruction of a function that takes or releases a lock. A CPU may stall before it calls a boundary from such code, for
 * there others get in between or are kept out, and at the start of any block of such code.
 *
 * A seed chooses some of the places, and lets all others alone: were all of them slow alike, those that are passed most often
 * would have all the stalls, and nearly every seed would try the same. Of the passes over a chosen place it takes one of some.
 * Which place is chosen depends on the seed and the place alone, so that a seed means the same even where two runs are not alike.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "clock.h"
#include "mix.h"
#include "stalls.h"

/* One of so many is chosen. Most blocks begin and end within what one CPU does undisturbed: there are forty for each call. */
enum { CALLS = 4, BLOCKS = 64, PASSES = 4 };
/* From a lock's hold time to longer than a tick or a flusher's work on an inode; each octave as often as the others. */
enum { SHORTEST_NS = 2000, OCTAVES = 11 };
enum { CALL = 0xe8, JUMP = 0xe9, CALL_BYTES = 5 };

struct range {
	uint64_t start, end;
};

/* None of these changes after stalls_start(). */
static struct range *code;
static uint64_t *boundaries;
static size_t n_code, n_boundaries;
static uint64_t seed;

/* Each CPU's is used by its own thread only. */
static struct {
	uint64_t draws, rests_until_ns;
} cpus[MAX_CPUS];

static int compare_ranges(const void *a, const void *b)
{
	const struct range *one = a, *other = b;

	return one->start < other->start ? -1 : one->start >= other->end;
}

static int compare_addresses(const void *a, const void *b)
{
	uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

	return one < other ? -1 : one > other;
}

static int read_line(const char *line)
{
	struct range range;

	if (sscanf(line, "code %" SCNx64 " %" SCNx64, &range.start, &range.end) == 2) {
		code = realloc(code, (n_code + 1) * sizeof(*code));
		code[n_code++] = range;
		return 0;
	}
	if (sscanf(line, "boundary %" SCNx64, &range.start) == 1) {
		boundaries = realloc(boundaries, (n_boundaries + 1) * sizeof(*boundaries));
		boundaries[n_boundaries++] = range.start;
		return 0;
	}
	return -1;
}

/** stalls_start - read the addresses; returns -1 where there is no such file, or a line that is none of these */
int stalls_start(const struct stalls_settings *settings)
{
	FILE *file = fopen(settings->path, "r");
	char line[128];
	int result = 0;

	if (!file)
		return -1;
	while (!result && fgets(line, sizeof(line), file))
		result = read_line(line);
	fclose(file);
	seed = settings->seed;
	qsort(code, n_code, sizeof(*code), compare_ranges);
	qsort(boundaries, n_boundaries, sizeof(*boundaries), compare_addresses);
	return result;
}

static bool is_chosen(uint64_t pc, uint64_t of)
{
	return mix(mix(seed) ^ pc) % of == 0;
}

/** stalls_in_code - tell whether an instruction is of code in which CPUs may stall */
bool stalls_in_code(uint64_t pc)
{
	struct range key = { pc, pc + 1 };

	return n_code && bsearch(&key, code, n_code, sizeof(*code), compare_ranges);
}

/** stalls_at_block - tell whether the seed has chosen a block of such code, by its first instruction */
bool stalls_at_block(uint64_t pc)
{
	return is_chosen(pc, BLOCKS);
}

/** stalls_at_call - tell whether an instruction of such code calls a boundary, and the seed has chosen it */
bool stalls_at_call(uint64_t pc, const uint8_t *bytes, size_t size)
{
	uint64_t target;

	/* A call at the end of a function is a jump. */
	if (size != CALL_BYTES || (bytes[0] != CALL && bytes[0] != JUMP))
		return false;
	target = pc + CALL_BYTES + (uint64_t)(int32_t)(bytes[1] | bytes[2] << 8 | bytes[3] << 16 | (uint32_t)bytes[4] << 24);
	return n_boundaries && is_chosen(pc, CALLS) &&
	       bsearch(&target, boundaries, n_boundaries, sizeof(*boundaries), compare_addresses);
}

/**
 * stalls_pass - a CPU comes to a chosen place; by its own thread
 * @cpu: the CPU
 * @now_ns: its time
 *
 * Return: how long it stalls, in ns; 0 for most passes, and while it has not gone on for as long as it stalled the last time: what
 * is passed all the time would take all the time.
 */
uint64_t stalls_pass(unsigned int cpu, uint64_t now_ns)
{
	uint64_t drawn = mix(mix(seed + cpu) + cpus[cpu].draws++), length;

	if (drawn % PASSES || now_ns < cpus[cpu].rests_until_ns)
		return 0;
	length = (uint64_t)SHORTEST_NS << (drawn >> 8) % OCTAVES;
	length += (drawn >> 16) % length;
	cpus[cpu].rests_until_ns = now_ns + 2 * length;
	return length;
}
