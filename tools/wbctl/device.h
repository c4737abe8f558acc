/* SPDX-License-Identifier: GPL-2.0 */
#ifndef WBCTL_DEVICE_H
#define WBCTL_DEVICE_H

#include <stdbool.h>

#ifndef SYSFS_ROOT
#define SYSFS_ROOT "/sys"
#endif
#ifndef DEV_ROOT
#define DEV_ROOT "/dev"
#endif

#define CLASS_BDI SYSFS_ROOT "/class/bdi"
#define BDI_LEN 24	/* two 32-bit numbers and a colon */
#define AUTO "auto"
#define NO_CONTEXTS "this kernel has no writeback contexts: boot one that has, see 'uname -r'"

bool read_attr(char *buf, int size, const char *dir, const char *name, const char *attr);
bool read_nwritebacks(const char *bdi, unsigned long *nr, bool *finds_number);
unsigned long count_possible_cpus(void);
bool is_dev_number(const char *s);
bool look_up(const char *arg, char *bdi, bool *is_path);
void find_bdi(const char *arg, char *bdi);

#endif
