/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What becomes of a pass: from xfs_agwb_queue to xfs_agwb_begin it waits in its
 * worker's queue, up to xfs_agwb_end it is written. One that is cancelled has
 * no xfs_agwb_begin.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM xfs_agwb

#if !defined(_TRACE_XFS_AGWB_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_XFS_AGWB_H

#include <linux/tracepoint.h>

DECLARE_EVENT_CLASS(xfs_agwb_pass_class,
		    TP_PROTO(struct xfs_agwb_pass *pass),
		    TP_ARGS(pass),
		    TP_STRUCT__entry(__field(dev_t, dev)
				     __field(u64, ino)
				     __field(unsigned int, worker)
				     __field(pgoff_t, start)
				     __field(long, budget)
				     __field(long, written)),
		    TP_fast_assign(__entry->dev = pass->round->agwb->mp->m_super->s_dev;
				   __entry->ino = VFS_I(pass->round->ip)->i_ino;
				   __entry->worker = pass->worker -
						     pass->round->agwb->workers;
				   __entry->start = pass->round->start;
				   __entry->budget = pass->share.budget;
				   __entry->written = pass->written;),
		    TP_printk("dev %d:%d ino 0x%llx worker %u start 0x%lx budget %ld written %ld",
			      MAJOR(__entry->dev), MINOR(__entry->dev),
			      __entry->ino, __entry->worker, __entry->start,
			      __entry->budget, __entry->written)
);

DEFINE_EVENT(xfs_agwb_pass_class, xfs_agwb_queue,
	     TP_PROTO(struct xfs_agwb_pass *pass),
	     TP_ARGS(pass)
);

DEFINE_EVENT(xfs_agwb_pass_class, xfs_agwb_begin,
	     TP_PROTO(struct xfs_agwb_pass *pass),
	     TP_ARGS(pass)
);

DEFINE_EVENT(xfs_agwb_pass_class, xfs_agwb_end,
	     TP_PROTO(struct xfs_agwb_pass *pass),
	     TP_ARGS(pass)
);

#endif /* _TRACE_XFS_AGWB_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE xfs_agwb_trace
#include <trace/define_trace.h>
