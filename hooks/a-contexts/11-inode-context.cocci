// An inode is attached to a cgroup writeback of its own context, and switches between those only.
// places: fs/fs-writeback.c 7, include/linux/backing-dev.h 1

@@
@@
 __inode_attach_wb(...)
 {
<...
(
- struct backing_dev_info *bdi = inode_to_bdi(inode);
+ struct bdi_writeback_ctx *ctx = fetch_bdi_writeback_ctx(inode);
|
- bdi
+ ctx
)
...>
 }

@@
@@
 inode_switch_wbs(...)
 {
<...
(
- struct backing_dev_info *bdi = inode_to_bdi(inode);
+ struct bdi_writeback_ctx *ctx = inode_wb_ctx(inode);
|
- bdi
+ ctx
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
+ wb_get_create(wb->ctx,
  memcg_css, GFP_KERNEL)
|
- &wb->bdi->wb
+ &wb->ctx->wb
)
...>
 }

@@
@@
 inode_to_wb(...)
 {
- return &inode_to_bdi(inode)->wb;
+ return inode->i_wb ?: bdi_root_wb(inode_to_bdi(inode));
 }
