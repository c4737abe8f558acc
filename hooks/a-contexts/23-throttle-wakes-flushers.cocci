// A throttled writer waits for the whole device: it wakes each flusher that has work, not only that of its
// inode. Likewise, to write back a cgroup on a device concerns each of its writebacks there.
// places: fs/fs-writeback.c 1, mm/page-writeback.c 3

@@
@@
 balance_dirty_pages(...)
 {
<...
(
- writeback_in_progress(wb)
+ throttle_writeback_in_progress(wb)
|
- wb_start_background_writeback(wb)
+ throttle_start_background_writeback(wb)
)
...>
 }

@@
@@
 cgroup_writeback_by_id(...)
 {
<...
- wb_queue_work(wb, work)
+ throttle_queue_work(wb, work)
...>
 }
