// SPDX-License-Identifier: GPL-2.0
/*
 * Test points: a task that comes to a named place waits there until it is let
 * go, so that a test can show what happens when another task comes in between.
 *
 * debugfs wb_test_point: write a name, and the next task that comes there
 * waits; write an empty line, and it goes on. Reading tells the name, and once
 * a task waits "reached" with its number.
 */

#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/wait.h>
#include <linux/wb-test-point.h>

static DEFINE_SPINLOCK(point_lock);	/* protects what follows */
static char armed[32];
static pid_t waiting;			/* 0: no task */
static unsigned int turn;		/* changes when the task may go on */

static DECLARE_WAIT_QUEUE_HEAD(point_waitq);

/**
 * wb_test_point - a place where a test may want to hold the current task
 * @name: what the test calls it
 *
 * Context: may sleep.
 */
void wb_test_point(const char *name)
{
	unsigned int mine;
	bool wait;

	spin_lock(&point_lock);
	mine = turn;
	wait = !waiting && !strcmp(armed, name);
	if (wait)
		waiting = task_pid_nr(current);
	spin_unlock(&point_lock);
	if (wait)
		wait_event_idle(point_waitq, READ_ONCE(turn) != mine);
}

static ssize_t test_point_write(struct file *file, const char __user *buf,
				size_t count, loff_t *pos)
{
	char name[sizeof(armed)] = {};

	if (count >= sizeof(name))
		return -EINVAL;
	if (copy_from_user(name, buf, count))
		return -EFAULT;

	spin_lock(&point_lock);
	strscpy(armed, strim(name));
	waiting = 0;
	WRITE_ONCE(turn, turn + 1);
	spin_unlock(&point_lock);
	wake_up_all(&point_waitq);
	return count;
}

static int test_point_show(struct seq_file *m, void *v)
{
	spin_lock(&point_lock);
	seq_puts(m, armed);
	if (waiting)
		seq_printf(m, " reached %d", waiting);
	seq_putc(m, '\n');
	spin_unlock(&point_lock);
	return 0;
}

static int test_point_open(struct inode *inode, struct file *file)
{
	return single_open(file, test_point_show, NULL);
}

static const struct file_operations test_point_fops = {
	.owner		= THIS_MODULE,
	.open		= test_point_open,
	.read		= seq_read,
	.write		= test_point_write,
	.llseek		= seq_lseek,
	.release	= single_release,
};

static int __init test_point_init(void)
{
	debugfs_create_file("wb_test_point", 0600, NULL, NULL,
			    &test_point_fops);
	return 0;
}
late_initcall(test_point_init);
