// A cgroup has its throttle in context 0, where it is found by its memcg. Its writebacks in other contexts live as long as
// the throttle, and go with it.
// places: mm/backing-dev.c 3

@@
@@
 cgwb_release_workfn(...)
 {
<...
+ cgwb_shutdown_ctx_wbs(wb);
 wb_shutdown(wb);
...>
 }

@@
@@
 cgwb_free_rcu(...)
 {
 ...
+ cgwb_free_ctx_wbs(wb);
 kfree(wb);
 }

@@
@@
 cleanup_offline_cgwbs_workfn(...)
 {
<...
- cleanup_offline_cgwb(wb)
+ cgwb_cleanup_offline_ctx_wbs(wb)
...>
 }
