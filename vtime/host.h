/* SPDX-License-Identifier: GPL-2.0 */
/* The host itself, past what QEMU is told of it: its clock, and a way to wake QEMU's main loop. */
#ifndef VTIME_HOST_H
#define VTIME_HOST_H

#include <stdint.h>

#define SECOND_NS 1000000000LL

uint64_t host_ns(void);
void wakes_setup(void);
int wakes_fd(void);
void wake_main_loop(void);

#endif
