/* SPDX-License-Identifier: GPL-2.0 */
#ifndef WBCTL_SETTING_H
#define WBCTL_SETTING_H

void set(char **args);
int apply(char **args);

#endif
