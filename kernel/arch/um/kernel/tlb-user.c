// SPDX-License-Identifier: GPL-2.0
/*
 * User code and its mappings on several CPUs.
 *
 * The mappings of a process are brought up to date by the CPU that is about to run its user code
 * (um_tlb_sync()). Whoever flushes them on another CPU marks what has changed, and waits until the
 * process is in user code no more: it cannot come back there without what was marked.
 *
 * mm->context.user_turns counts how often user code was entered and left; it is odd inside. Only
 * the CPU that holds the turnstile of the mm changes it, and it takes no lock while it is odd, so a
 * flush may wait for it with any lock held that is not taken in interrupts. A flush must not be
 * called with interrupts disabled, as on any architecture that flushes by IPI.
 */
#include <linux/processor.h>
#include <linux/sched.h>
#include <asm/tlbflush.h>
#include <os.h>
#include <skas.h>

static void user_turn(struct mm_struct *mm)
{
	/* What user code did is there before it is seen to have left. */
	smp_mb();
	WRITE_ONCE(mm->context.user_turns, mm->context.user_turns + 1);
	/* The turn is there before marks are looked for; pairs with um_tlb_wait_for_user(). */
	smp_mb();
}

/* Bring the mappings of the current process up to date, and enter its user code. */
void current_mm_enters_user(void)
{
	struct mm_struct *mm = current->mm;

	if (!mm)
		return;

	um_tlb_sync(mm);
	user_turn(mm);
	/* Marked in between, by somebody who may not have seen the turn. */
	while (READ_ONCE(mm->context.sync_tlb_range_to)) {
		user_turn(mm);
		um_tlb_sync(mm);
		user_turn(mm);
	}
}

/* The current process has left its user code. */
void current_mm_left_user(void)
{
	if (current->mm)
		user_turn(current->mm);
}

/**
 * um_tlb_wait_for_user - wait until no user code runs with mappings that were marked before
 * @mm: whose mappings they are
 */
void um_tlb_wait_for_user(struct mm_struct *mm)
{
	unsigned int turns;

	/* Who enters sees the mark, or the turn is seen here; pairs with user_turn(). */
	smp_mb();
	turns = READ_ONCE(mm->context.user_turns);
	if (!(turns & 1))
		return;

	os_alarm_process(mm->context.id.pid);
	spin_until_cond(READ_ONCE(mm->context.user_turns) != turns ||
			READ_ONCE(mm->context.id.pid) <= 0);
}
