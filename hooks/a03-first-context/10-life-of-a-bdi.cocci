// A BDI makes and frees its contexts, where it had one bdi_writeback.
// places: mm/backing-dev.c 9

@@
@@
- static
 int cgwb_bdi_init(struct backing_dev_info *bdi)
 {
<...
(
- ret = wb_init(bdi_root_wb(bdi), bdi, GFP_KERNEL);
+ ret = wb_init_root(bdi_wb_ctx(bdi, 0));
|
- return wb_init(bdi_root_wb(bdi), bdi, GFP_KERNEL);
+ return wb_init_root(bdi_wb_ctx(bdi, 0));
)
...>
 }

@@
@@
 cgwb_create(...)
 {
<...
- wb_init(wb, bdi, gfp)
+ wb_init(wb, bdi_wb_ctx(bdi, 0), wb, gfp)
...>
 }

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
 release_bdi(...)
 {
 ...
- WARN_ON_ONCE(test_bit(WB_registered, &bdi_root_wb(bdi)->state));
 ...
- wb_exit(bdi_root_wb(bdi));
+ bdi_free_wb_ctx(bdi);
 ...
 }

@@
@@
- static
 void wb_exit(struct bdi_writeback *wb) { ... }
