// F2FS lets one ->writepages() run at a time, to keep the blocks of a file together in the log. That would
// make the flushers wait for one another; docs/contexts.md says more.
// places: fs/f2fs/data.c 1

@@
@@
 __should_serialize_io(...)
 {
 ...
 if (f2fs_need_compress_data(inode))
   return true;
+ if (sb_has_parallel_writeback(inode->i_sb))
+	return false;
 ...
 }
