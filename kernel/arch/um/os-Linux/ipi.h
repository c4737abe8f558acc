/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __UM_OS_LINUX_IPI_H
#define __UM_OS_LINUX_IPI_H

#include <pthread.h>
#include <signal.h>

int ipi_send(pthread_t thread, int cpu, int vector);
void ipi_signal(int sig, siginfo_t *si, void *uc);

#if IS_ENABLED(CONFIG_UML_DEFERRED_IPI)

int ipi_pending(void);
void ipi_deliver(void);

#else /* !CONFIG_UML_DEFERRED_IPI */

static inline int ipi_pending(void) { return 0; }
static inline void ipi_deliver(void) { }

#endif /* CONFIG_UML_DEFERRED_IPI */

#endif /* __UM_OS_LINUX_IPI_H */
