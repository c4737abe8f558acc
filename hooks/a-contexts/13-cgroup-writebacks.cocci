// The cgroup writebacks of a BDI become those of a context. Our code calls what sets one up and takes it
// down, so that is no longer static.
// places: include/linux/backing-dev.h 2, mm/backing-dev.c 28

@@
identifier f = {wb_get_lookup, wb_get_create};
@@
 struct bdi_writeback *f(
- struct backing_dev_info *bdi
+ struct bdi_writeback_ctx *ctx
 , ...);

@@
identifier f = {wb_get_lookup, wb_get_create};
@@
 f(
- struct backing_dev_info *bdi
+ struct bdi_writeback_ctx *ctx
 , ...)
 {
<...
- bdi
+ ctx
...>
 }

@@
identifier f = {cgwb_bdi_init, cgwb_bdi_register};
type T;
@@
- static
 T f(
- struct backing_dev_info *bdi
+ struct bdi_writeback_ctx *ctx
 )
 {
<...
(
- mutex_init(&bdi->cgwb_release_mutex);
|
- init_rwsem(&bdi->wb_switch_rwsem);
|
- wb_init(&bdi->wb, bdi, GFP_KERNEL)
+ wb_init_root(ctx)
|
- bdi
+ ctx
)
...>
 }

@@
@@
- static
 void cgwb_bdi_unregister(
- struct backing_dev_info *bdi
+ struct bdi_writeback_ctx *ctx
 )
 { }

@@
@@
- static
 void cgwb_bdi_unregister(
- struct backing_dev_info *bdi
+ struct bdi_writeback_ctx *ctx
 )
 {
+ struct backing_dev_info *bdi = ctx->bdi;
  struct radix_tree_iter iter;
<...
(
- bdi->cgwb_tree
+ ctx->cgwb_tree
|
- bdi->wb_list
+ ctx->wb_list
|
- bdi->wb.state
+ ctx->wb.state
)
...>
 }

@@
@@
 cgwb_create(
- struct backing_dev_info *bdi
+ struct bdi_writeback_ctx *ctx
 , ...)
 {
<...
(
+ struct backing_dev_info *bdi = ctx->bdi;
  struct bdi_writeback *wb;
|
- bdi->cgwb_tree
+ ctx->cgwb_tree
|
- bdi->wb_list
+ ctx->wb_list
|
- bdi->wb.state
+ ctx->wb.state
)
...>
 }

@@
@@
 cgwb_kill(...)
 {
<...
- &wb->bdi->cgwb_tree
+ &wb->ctx->cgwb_tree
...>
 }
