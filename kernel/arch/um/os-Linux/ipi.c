// SPDX-License-Identifier: GPL-2.0
/*
 * Interprocessor interrupts that are disabled without a system call.
 *
 * An IPI is a signal to the host thread that is a CPU. If that signal were
 * blocked on the host whenever the kernel disables IRQs, each spinlock taken
 * with IRQs disabled would cost two system calls. No machine has such a cost,
 * and a kernel that writes pages back would spend a third of its time on it.
 * So the signal stays unblocked, and one that comes while IRQs are disabled is
 * ignored: which vectors were sent is noted ahead of the signal, and enabling
 * IRQs looks for what was noted.
 *
 * No vector is lost. The receiver sets signals_enabled, then looks; the sender
 * notes, then sends the signal. So either the receiver sees the vector, or the
 * signal finds signals_enabled set. Idle CPUs sleep with the signal blocked,
 * after they have looked.
 */

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <kern_util.h>
#include <os.h>
#include <smp.h>
#include "internal.h"
#include "ipi.h"

/*
 * Vectors sent to each CPU and not handled yet, a bit each. Set by any CPU,
 * cleared by its own.
 */
static unsigned int ipi_vectors[CONFIG_NR_CPUS];

/**
 * ipi_send() - send a vector to a CPU
 * @thread: the host thread that is the CPU
 * @cpu: the CPU
 * @vector: the vector
 *
 * No signal while the CPU has other vectors to handle: theirs is on its way, or
 * came while IRQs were disabled.
 *
 * Return: 0, or a positive error number of the host.
 */
int ipi_send(pthread_t thread, int cpu, int vector)
{
	if (__atomic_fetch_or(&ipi_vectors[cpu], 1U << vector,
			      __ATOMIC_SEQ_CST))
		return 0;

	return pthread_kill(thread, IPI_SIGNAL);
}

/**
 * ipi_pending() - are there vectors that this CPU has not handled yet?
 *
 * Return: 1 if there are, else 0.
 */
int ipi_pending(void)
{
	return !!__atomic_load_n(&ipi_vectors[uml_curr_cpu()],
				 __ATOMIC_SEQ_CST);
}

/**
 * ipi_deliver() - handle the vectors that were sent to this CPU
 *
 * One at a time: the handler of one may enable IRQs, which delivers the
 * others. Called with IRQs disabled.
 */
void ipi_deliver(void)
{
	unsigned int *vectors = &ipi_vectors[uml_curr_cpu()];
	unsigned int noted;

	while ((noted = __atomic_load_n(vectors, __ATOMIC_SEQ_CST))) {
		int vector = __builtin_ctz(noted);

		__atomic_fetch_and(vectors, ~(1U << vector), __ATOMIC_SEQ_CST);
		uml_ipi_handler(vector);
	}
}

/**
 * ipi_signal() - handler of the signal that tells of vectors
 * @sig: unused
 * @si: unused
 * @uc: unused
 *
 * The signal may come again meanwhile: a handler that enables IRQs can be
 * interrupted by further IPIs, or those who wait for it would wait for ever.
 */
void ipi_signal(int sig, siginfo_t *si, void *uc)
{
	int save_errno = errno;

	if (signals_enabled) {
		block_signals_trace();
		ipi_deliver();
		unblock_signals_trace();
	}

	errno = save_errno;
}
