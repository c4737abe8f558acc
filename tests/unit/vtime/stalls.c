// SPDX-License-Identifier: GPL-2.0
/*
 * Where and for how long vtime/stalls.c has CPUs stall: stalls FILE SEED WHAT, with the words that each below names.
 * Prints numbers; tests/unit/test_stalls.py says what they must be.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../../vtime/stalls.h"

static uint64_t number(const char *text)
{
	return strtoull(text, NULL, 16);
}

int main(int argc, char **argv)
{
	struct stalls_settings settings = { strtoull(argv[2], NULL, 10), argv[1] };
	uint64_t now = 0;

	if (stalls_start(&settings))
		return 1;
	if (!strcmp(argv[3], "code")) {			/* ADDRESS...: whether each is of such code */
		for (int k = 4; k < argc; k++)
			printf("%d\n", stalls_in_code(number(argv[k])));
	} else if (!strcmp(argv[3], "blocks")) {	/* START END: the blocks that are chosen of those that begin there */
		for (uint64_t pc = number(argv[4]); pc < number(argv[5]); pc++)
			if (stalls_at_block(pc))
				printf("%" PRIu64 "\n", pc);
	} else if (!strcmp(argv[3], "calls")) {		/* START END TARGET OPCODE: calls of TARGET that are chosen */
		for (uint64_t pc = number(argv[4]); pc < number(argv[5]); pc++) {
			int32_t distance = (int32_t)(number(argv[6]) - pc - 5);
			uint8_t code[5] = { (uint8_t)number(argv[7]) };

			memcpy(code + 1, &distance, sizeof(distance));
			if (stalls_at_call(pc, code, sizeof(code)))
				printf("%" PRIu64 "\n", pc);
		}
	} else {					/* CPU PASSES GAP: the time and length of each stall, passes GAP ns apart */
		for (int k = 0; k < atoi(argv[5]); k++, now += strtoull(argv[6], NULL, 10)) {
			uint64_t ns = stalls_pass((unsigned int)atoi(argv[4]), now);

			if (ns)
				printf("%" PRIu64 " %" PRIu64 "\n", now, ns);
			now += ns;
		}
	}
	return 0;
}
