/* SPDX-License-Identifier: GPL-2.0 */
#ifndef WBCTL_STREAM_H
#define WBCTL_STREAM_H

void stream(char **args);

#endif
