// The bandwidth estimate is one for all contexts of a throttle: the device's total counts it once, and the
// contexts with dirty inodes share it. So do they what was written with IOCB_DONTCACHE. Of a work item for all of a
// device each context may write what is the throttle's, for one of them may have nearly all that is dirty.
// places: fs/fs-writeback.c 6, mm/page-writeback.c 2

@@
@@
 wb_io_lists_populated(...)
 {
<...
- atomic_long_add(wb->avg_write_bandwidth, &wb->bdi->tot_write_bandwidth);
+ wb_dirty_io_start(wb);
...>
 }

@@
@@
 wb_io_lists_depopulated(...)
 {
<...
- WARN_ON_ONCE(atomic_long_sub_return(wb->avg_write_bandwidth, &wb->bdi->tot_write_bandwidth) < 0);
+ wb_dirty_io_end(wb);
...>
 }

@@
identifier f = {wbc_detach_inode, writeback_chunk_size};
@@
 f(...)
 {
<...
- wb->avg_write_bandwidth
+ wb_bandwidth_share(wb)
...>
 }

@@
@@
 wb_split_bdi_pages(...)
 {
<...
- wb->avg_write_bandwidth
+ wb->throttle->avg_write_bandwidth
...>
 }

@@
@@
 wb_update_write_bandwidth(...)
 {
 ...
- if (wb_has_dirty_io(wb)) { ... }
 wb->write_bandwidth = bw;
- WRITE_ONCE(wb->avg_write_bandwidth, avg);
+ wb_set_avg_write_bandwidth(wb, avg);
 }

@@
@@
 wb_check_start_dontcache(...)
 {
<...
- wb_stat_sum(wb, WB_DONTCACHE_DIRTY)
+ throttle_share(wb->throttle, wb_stat_sum(wb, WB_DONTCACHE_DIRTY))
...>
 }
