// A cgroup has its throttle in context 0, where it is found by its memcg and counts its references. Its writebacks in
// other contexts live as long as the throttle, and go with it. All of a BDI's are on one list, whose lock is ours.
// places: include/linux/backing-dev-defs.h 4, mm/backing-dev.c 13

@@
identifier f = {wb_tryget, wb_get, wb_put_many, wb_dying};
@@
 f(...)
 {
<...
- &wb->refcnt
+ &wb->throttle->refcnt
...>
 }

@@
@@
- static
 int cgwb_bdi_init(struct backing_dev_info *bdi)
 {
<...
(
- init_rwsem(&bdi->wb_switch_rwsem);
|
- ret = wb_init(&bdi->wb, bdi, GFP_KERNEL);
+ ret = wb_init_root(bdi_wb_ctx(bdi, 0));
|
- return wb_init(&bdi->wb, bdi, GFP_KERNEL);
+ return wb_init_root(bdi_wb_ctx(bdi, 0));
)
...>
 }

@@
@@
 cgwb_create(...)
 {
<...
(
- wb_init(wb, bdi, gfp)
+ wb_init(wb, bdi_wb_ctx(bdi, 0), wb, gfp)
|
- list_add_tail_rcu(&wb->bdi_node, &bdi->wb_list)
+ bdi_add_wb(wb)
)
...>
 }

@@
@@
 cgwb_bdi_register(...)
 {
<...
- list_add_tail_rcu(&bdi->wb.bdi_node, &bdi->wb_list);
+ bdi_add_wb(&bdi->wb);
...>
 }

@@
@@
 cgwb_remove_from_bdi_list(...)
 {
<...
- list_del_rcu(&wb->bdi_node);
+ bdi_del_wb(wb);
...>
 }

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
