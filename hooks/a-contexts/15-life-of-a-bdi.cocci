// A BDI makes, registers, shuts down and frees its contexts, where it had one bdi_writeback.
// places: block/genhd.c 1, mm/backing-dev.c 8

@@
@@
 bdi_init(...)
 {
 ...
- return cgwb_bdi_init(bdi);
+ return bdi_init_first_wb_ctx(bdi);
 }

@@
@@
 bdi_register_va(...)
 {
 ...
- set_bit(WB_registered, &bdi->wb.state);
+ bdi_register_wb_ctx(bdi);
 ...
 }

@@
@@
 bdi_unregister(...)
 {
 ...
 wb_shutdown(&bdi->wb);
+ bdi_shutdown_wb_ctx(bdi);
 ...
 }

@@
@@
 release_bdi(...)
 {
 ...
- WARN_ON_ONCE(test_bit(WB_registered, &bdi->wb.state));
 ...
- wb_exit(&bdi->wb);
+ bdi_free_wb_ctx(bdi);
 ...
 }

@@
identifier f = {wb_shutdown, wb_exit};
@@
- static
 void f(struct bdi_writeback *wb) { ... }

@@
identifier disk, q, node_id;
statement S;
@@
 disk->bdi = bdi_alloc(node_id);
 if (!disk->bdi)
  S
+ bdi_enable_wb_ctx(disk->bdi);
 disk->queue = q;

@@
@@
 struct attribute *bdi_dev_attrs[] = {
 ...,
 &dev_attr_strict_limit.attr,
+ &dev_attr_nwritebacks.attr,
 ...
 };
