// An inode is attached to a cgroup writeback of its own context, and switches between those only. Between contexts it
// moves under the locks of its lists alone, so whoever reads i_wb under another lock reads it once.
// places: fs/fs-writeback.c 8, include/linux/backing-dev.h 3

@@
expression E, F;
@@
 __inode_attach_wb(...)
 {
<...
(
- struct backing_dev_info *bdi = inode_to_bdi(inode);
+ struct bdi_writeback_ctx *ctx = fetch_bdi_writeback_ctx(inode);
|
- wb_get_create(bdi, E, F)
+ wb_get_create_in_ctx(ctx, E, F)
|
- bdi_root_wb(bdi)
+ &ctx->wb
)
...>
 }

@@
expression E, F;
@@
 inode_switch_wbs(...)
 {
<...
(
- struct backing_dev_info *bdi = inode_to_bdi(inode);
+ struct bdi_writeback_ctx *ctx = inode_wb_ctx(inode);
|
- wb_get_create(bdi, E, F)
+ wb_get_create_in_ctx(ctx, E, F)
)
...>
 }

@@
@@
 cleanup_offline_cgwb(...)
 {
<...
(
- wb_get_create(wb->bdi,
+ wb_get_create_only_in_ctx(wb->ctx,
  memcg_css, GFP_KERNEL)
|
- bdi_root_wb(wb->bdi)
+ &wb->ctx->wb
)
...>
 }

@@
@@
 inode_to_wb(...)
 {
- return bdi_root_wb(inode_to_bdi(inode));
+ return READ_ONCE(inode->i_wb) ?: bdi_root_wb(inode_to_bdi(inode));
 }

@@
identifier f = {inode_to_wb, unlocked_inode_to_wb_begin};
@@
 f(...)
 {
 ...
- return inode->i_wb;
+ return READ_ONCE(inode->i_wb);
 }

@@
identifier f = {locked_inode_to_wb_and_lock_list};
@@
 f(...)
 {
<...
- wb == inode->i_wb
+ wb == (READ_ONCE(inode->i_wb) ?: bdi_root_wb(wb->bdi))
...>
 }
