// Inode numbers of F2FS do not spread: they share a number space with its node blocks. Nor do its generations,
// which are random. A turn is kept for as long as the inode is in memory, so its context does not change.
// places: fs/f2fs/super.c 3

@@
@@
 f2fs_alloc_inode(...)
 {
 ...
 init_f2fs_rwsem(&fi->i_xattr_sem);
+ fi->wb_turn = atomic_inc_return(&F2FS_SB(sb)->wb_turn);
 ...
 }

@@
@@
+ static unsigned int f2fs_get_inode_wb_ctx_idx(struct inode *inode, int nr_wb_ctx)
+ {
+	return F2FS_I(inode)->wb_turn % nr_wb_ctx;
+ }
+
 struct super_operations f2fs_sops = {
+ .get_inode_wb_ctx_idx = f2fs_get_inode_wb_ctx_idx,
 ...
 };
