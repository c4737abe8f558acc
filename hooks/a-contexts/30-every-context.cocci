// Whoever walks the writebacks of a BDI walks those of all its contexts.
// places: fs/fs-writeback.c 4, mm/backing-dev.c 2

@@
iterator name list_for_each_entry_rcu;
statement S;
@@
- list_for_each_entry_rcu(wb, &bdi->wb_list, bdi_node)
+ for (wb = bdi_next_wb_rcu(bdi, NULL); wb; wb = bdi_next_wb_rcu(bdi, wb))
 S

@@
iterator name list_for_each_entry_continue_rcu;
statement S;
@@
- struct bdi_writeback *wb = list_entry(&bdi->wb_list, struct bdi_writeback, bdi_node);
+ struct bdi_writeback *wb = NULL;
 ...
- list_for_each_entry_continue_rcu(wb, &bdi->wb_list, bdi_node)
+ while ((wb = bdi_next_wb_rcu(bdi, wb)))
 S
