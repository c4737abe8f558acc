// A BDI registers and shuts down all of its contexts, where it had one bdi_writeback. All of its writebacks are on one list,
// whose lock is ours.
// places: mm/backing-dev.c 8

@@
@@
 cgwb_create(...)
 {
<...
- list_add_tail_rcu(&wb->bdi_node, &bdi->wb_list)
+ bdi_add_wb(wb)
...>
 }

@@
@@
 cgwb_bdi_register(...)
 {
<...
- list_add_tail_rcu(&bdi_root_wb(bdi)->bdi_node, &bdi->wb_list);
+ bdi_add_wb(bdi_root_wb(bdi));
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
 bdi_register_va(...)
 {
 ...
- set_bit(WB_registered, &bdi_root_wb(bdi)->state);
+ bdi_register_wb_ctx(bdi);
 ...
 }

@@
@@
 bdi_unregister(...)
 {
 ...
 wb_shutdown(bdi_root_wb(bdi));
+ bdi_shutdown_wb_ctx(bdi);
 ...
 }

@@
@@
- static
 void wb_shutdown(struct bdi_writeback *wb) { ... }
