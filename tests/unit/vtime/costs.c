// SPDX-License-Identifier: GPL-2.0
/* Print the cost of the instruction whose bytes are the arguments, in hexadecimal, or "pause". */
#include <stdio.h>
#include <stdlib.h>
#include "../../../vtime/costs.h"

int main(int argc, char **argv)
{
	uint8_t code[15];

	for (int k = 1; k < argc; k++)
		code[k - 1] = (uint8_t)strtoul(argv[k], NULL, 16);
	if (is_pause(code, (size_t)argc - 1))
		puts("pause");
	else
		printf("%lu\n", (unsigned long)cost_of(code, (size_t)argc - 1));
	return 0;
}
