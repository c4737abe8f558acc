// To write back a cgroup on a device concerns each of its writebacks there.
// places: fs/fs-writeback.c 1

@@
@@
 cgroup_writeback_by_id(...)
 {
<...
- wb_queue_work(wb, work)
+ throttle_queue_work(wb, work)
...>
 }
