// SPDX-License-Identifier: GPL-2.0
/*
 * What debugfs tells of each writeback context of a BDI.
 */

#include <linux/backing-dev.h>
#include <linux/bdi-writeback-ctx.h>
#include <linux/list.h>
#include <linux/rculist.h>
#include <linux/seq_file.h>
#include "bdi-writeback-ctx.h"

struct wb_ctx_stats {
	size_t nr_dirty;
	size_t nr_io;
	size_t nr_more_io;
	size_t nr_dirty_time;
	unsigned long nr_flushed;
	bool running;
};

static void wb_ctx_add_stats(struct wb_ctx_stats *stats,
			     struct bdi_writeback *wb)
{
	spin_lock(&wb->list_lock);
	stats->nr_dirty += list_count_nodes(&wb->b_dirty);
	stats->nr_io += list_count_nodes(&wb->b_io);
	stats->nr_more_io += list_count_nodes(&wb->b_more_io);
	stats->nr_dirty_time += list_count_nodes(&wb->b_dirty_time);
	spin_unlock(&wb->list_lock);

	stats->nr_flushed += READ_ONCE(wb->nr_flushed);
	stats->running |= writeback_in_progress(wb);
}

/**
 * bdi_show_wb_ctx - one line of statistics for each context
 * @m: where to print
 * @bdi: BDI of interest
 *
 * A context sums up over its cgroup writebacks that exist.
 */
void bdi_show_wb_ctx(struct seq_file *m, struct backing_dev_info *bdi)
{
	struct bdi_writeback_ctx *ctx;
	struct bdi_writeback *wb;

	for (ctx = bdi_next_wb_ctx(bdi, NULL); ctx;
		     ctx = bdi_next_wb_ctx(bdi, ctx)) {
		struct wb_ctx_stats stats = {};

		rcu_read_lock();
		list_for_each_entry_rcu(wb, &bdi->wb_list, bdi_node)
			if (wb->ctx == ctx)
				wb_ctx_add_stats(&stats, wb);
		rcu_read_unlock();

		seq_printf(m,
			   "Context %u: b_dirty %zu b_io %zu b_more_io %zu b_dirty_time %zu flushed %lu kB running %d\n",
			   ctx->index, stats.nr_dirty, stats.nr_io,
			   stats.nr_more_io, stats.nr_dirty_time,
			   stats.nr_flushed << (PAGE_SHIFT - 10),
			   stats.running);
	}
}
