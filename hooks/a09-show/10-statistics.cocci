// The statistics in debugfs cover all contexts, and count what is the throttle's once. Each context
// stands below the sum.
// places: mm/backing-dev.c 5

@@
iterator name list_for_each_entry_rcu;
@@
 bdi_collect_stats(...)
 {
- collect_wb_stats(stats, bdi_root_wb(bdi));
+ struct bdi_writeback *wb;
+
+ rcu_read_lock();
+ list_for_each_entry_rcu(wb, &bdi->wb_list, bdi_node)
+	collect_wb_stats(stats, wb);
+ rcu_read_unlock();
 }

@@
@@
 collect_wb_stats(...)
 {
 ...
 spin_unlock(&wb->list_lock);
+
+ if (wb->throttle != wb)
+	return;
 ...
 }

@@
@@
 cgwb_debug_stats_show(...)
 {
<...
- mem_cgroup_wb_domain(wb)
+ wb->throttle == wb && mem_cgroup_wb_domain(wb)
...>
 }

@@
@@
 wb_stats_show(...)
 {
<...
- wb->avg_write_bandwidth
+ wb->throttle->avg_write_bandwidth
...>
 }

@@
@@
 bdi_debug_stats_show(...)
 {
<...
+ bdi_show_wb_ctx(m, bdi);
+
 return 0;
...>
 }
