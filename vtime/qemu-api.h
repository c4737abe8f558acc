/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What this plugin uses of QEMU's plugin interface, version 4 (QEMU 9.2 and later).
 *
 * Declared here, as no package of the distribution has QEMU's own header. QEMU refuses a plugin whose version is
 * not one that it knows, so a change of the interface is an error at the start of a guest and not a wrong figure.
 */
#ifndef VTIME_QEMU_API_H
#define VTIME_QEMU_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QEMU_PLUGIN_API_VERSION 4
#define EXPORT __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_scoreboard;
struct qemu_plugin_register;
struct qemu_info;

typedef struct {
	struct qemu_plugin_scoreboard *score;
	size_t offset;
} qemu_plugin_u64;

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_CB_R_REGS };
enum qemu_plugin_cond { QEMU_PLUGIN_COND_GE = 7 };
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };

typedef void (*qemu_plugin_vcpu_cb)(qemu_plugin_id_t id, unsigned int vcpu);
typedef void (*qemu_plugin_udata_cb)(qemu_plugin_id_t id, void *data);
typedef void (*qemu_plugin_tb_cb)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*qemu_plugin_exec_cb)(unsigned int vcpu, void *data);

void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id, qemu_plugin_vcpu_cb cb);
void qemu_plugin_register_vcpu_idle_cb(qemu_plugin_id_t id, qemu_plugin_vcpu_cb cb);
void qemu_plugin_register_vcpu_resume_cb(qemu_plugin_id_t id, qemu_plugin_vcpu_cb cb);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_plugin_tb_cb cb);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, qemu_plugin_udata_cb cb, void *data);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t size);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(struct qemu_plugin_tb *tb, enum qemu_plugin_op op,
						       qemu_plugin_u64 entry, uint64_t value);
void qemu_plugin_register_vcpu_tb_exec_cond_cb(struct qemu_plugin_tb *tb, qemu_plugin_exec_cb cb,
					       enum qemu_plugin_cb_flags flags, enum qemu_plugin_cond cond,
					       qemu_plugin_u64 entry, uint64_t value, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_plugin_exec_cb cb,
					    enum qemu_plugin_cb_flags flags, void *data);

struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t size);
void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score, unsigned int vcpu);

/* GLib's arrays, as far as the calls below need them; the functions are in QEMU's process already. */
struct bytes {
	uint8_t *data;
	unsigned int size;
};

struct registers {
	struct {
		struct qemu_plugin_register *handle;
		const char *name;
		const char *feature;
	} *data;
	unsigned int count;
};

struct bytes *g_byte_array_new(void);
struct bytes *g_byte_array_set_size(struct bytes *bytes, unsigned int size);

struct registers *qemu_plugin_get_registers(void);
int qemu_plugin_read_register(struct qemu_plugin_register *handle, struct bytes *to);
bool qemu_plugin_read_memory_vaddr(uint64_t address, struct bytes *to, size_t size);

#endif
