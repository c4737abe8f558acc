/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where inodes are in the writeback contexts of a BDI. What the flushers do
 * is in the events of writeback.h, which carry the context too.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM writeback_ctx

#if !defined(_TRACE_WRITEBACK_CTX_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_WRITEBACK_CTX_H

#include <linux/backing-dev.h>
#include <linux/tracepoint.h>

TRACE_EVENT(wb_ctx_attach,
	    TP_PROTO(struct inode *inode, struct bdi_writeback *wb),
	    TP_ARGS(inode, wb),
	    TP_STRUCT__entry(__array(char, name, 32)
			     __field(u64, ino)
			     __field(unsigned int, ctx)),
	    TP_fast_assign(strscpy_pad(__entry->name, bdi_dev_name(wb->bdi), 32);
			   __entry->ino = inode->i_ino;
			   __entry->ctx = wb->ctx->index;),
	    TP_printk("bdi %s: ino=%llu ctx=%u",
		      __entry->name, __entry->ino, __entry->ctx)
);

TRACE_EVENT(wb_ctx_switch,
	    TP_PROTO(struct inode *inode, struct bdi_writeback *old_wb,
		     struct bdi_writeback *new_wb),
	    TP_ARGS(inode, old_wb, new_wb),
	    TP_STRUCT__entry(__array(char, name, 32)
			     __field(u64, ino)
			     __field(unsigned int, old_ctx)
			     __field(unsigned int, new_ctx)),
	    TP_fast_assign(strscpy_pad(__entry->name, bdi_dev_name(old_wb->bdi), 32);
			   __entry->ino = inode->i_ino;
			   __entry->old_ctx = old_wb->ctx->index;
			   __entry->new_ctx = new_wb->ctx->index;),
	    TP_printk("bdi %s: ino=%llu old_ctx=%u new_ctx=%u",
		      __entry->name, __entry->ino,
		      __entry->old_ctx, __entry->new_ctx)
);

TRACE_EVENT(wb_ctx_resize,
	    TP_PROTO(struct backing_dev_info *bdi, unsigned int nr_wb_ctx),
	    TP_ARGS(bdi, nr_wb_ctx),
	    TP_STRUCT__entry(__array(char, name, 32)
			     __field(unsigned int, old_nr)
			     __field(unsigned int, new_nr)),
	    TP_fast_assign(strscpy_pad(__entry->name, bdi_dev_name(bdi), 32);
			   __entry->old_nr = bdi->nr_wb_ctx;
			   __entry->new_nr = nr_wb_ctx;),
	    TP_printk("bdi %s: old_nr=%u new_nr=%u",
		      __entry->name, __entry->old_nr, __entry->new_nr)
);

#endif /* _TRACE_WRITEBACK_CTX_H */

/* This part must be outside protection */
#include <trace/define_trace.h>
