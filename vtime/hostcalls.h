/* SPDX-License-Identifier: GPL-2.0 */
/* QEMU's calls of its host, answered in virtual time. */
#ifndef VTIME_HOSTCALLS_H
#define VTIME_HOSTCALLS_H

int hostcalls_are_virtual(void);
void hostcalls_of_cpu(unsigned int cpu);

#endif
