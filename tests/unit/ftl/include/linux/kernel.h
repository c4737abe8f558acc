/* SPDX-License-Identifier: GPL-2.0 */
/* What labblk's flash translation layer needs of the kernel, for a program of one thread. */
#ifndef FTL_KERNEL_H
#define FTL_KERNEL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef uint32_t u32;
typedef uint64_t u64;

#define U32_MAX UINT32_MAX
#define max(a, b) ((a) > (b) ? (a) : (b))
#define container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))

#define kvmalloc_objs(obj, count) malloc(sizeof(obj) * (count))
#define kvzalloc_objs(obj, count) calloc(count, sizeof(obj))
#define kvfree free

struct mutex { int unused; };
#define mutex_init(mutex) ((void)(mutex))
#define mutex_destroy(mutex) ((void)(mutex))
#define guard(kind) (void)

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

struct list_head {
	struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list->prev = list;
}

static inline bool list_empty(const struct list_head *list)
{
	return list->next == list;
}

static inline void list_del_init(struct list_head *entry)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
	INIT_LIST_HEAD(entry);
}

static inline void list_add_tail(struct list_head *entry, struct list_head *list)
{
	entry->prev = list->prev;
	entry->next = list;
	list->prev->next = entry;
	list->prev = entry;
}

#define list_first_entry(list, type, member) container_of((list)->next, type, member)

#endif
