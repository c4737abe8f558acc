// SPDX-License-Identifier: GPL-2.0
/*
 * The plugin: counts what each virtual CPU executes, and brings it to its clock when its turn is over.
 *
 * Arguments: quantum=NS, mips=N, pause=INSTRUCTIONS, lanes=N, report=FILE, samples=FILE, interval=NS, switch=ADDRESS,
 * stalls=FILE, seed=N; docs/machine.md says what each is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "clock.h"
#include "costs.h"
#include "hostcalls.h"
#include "qemu-api.h"
#include "samples.h"
#include "stalls.h"

enum { MOST_BYTES = 15, CACHE_LINE = 64 };

EXPORT int qemu_plugin_version = QEMU_PLUGIN_API_VERSION;

static struct qemu_plugin_scoreboard *counts;
static char *report;
static uint64_t switch_address;
static bool with_stalls;

static void cpu_starts(qemu_plugin_id_t id, unsigned int cpu)
{
	(void)id;
	hostcalls_of_cpu(cpu);
	samples_cpu_starts(cpu);
	/* The counts move when there are more CPUs than QEMU had room for. */
	for (unsigned int k = 0; k <= cpu; k++)
		clock_cpu_counts(k, qemu_plugin_scoreboard_find(counts, k));
	clock_cpu_starts(cpu);
}

static void cpu_halts(qemu_plugin_id_t id, unsigned int cpu)
{
	(void)id;
	clock_cpu_halts(cpu);
}

static void cpu_resumes(qemu_plugin_id_t id, unsigned int cpu)
{
	(void)id;
	clock_cpu_resumes(cpu);
}

static void turn_ends(unsigned int cpu, void *pc)
{
	clock_wait(cpu);
	samples_running(cpu, (uint64_t)pc);
}

static void pauses(unsigned int cpu, void *pc)
{
	clock_pause(cpu);
	samples_running(cpu, (uint64_t)pc);
}

static void switches(unsigned int cpu, void *pc)
{
	(void)pc;
	samples_switch(cpu);
}

static void may_stall(unsigned int cpu, void *data)
{
	uint64_t ns = stalls_pass(cpu, clock_cpu_now(cpu));

	(void)data;
	if (ns)
		clock_stall(cpu, ns);
}

static void translates(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	qemu_plugin_u64 count = { counts, 0 };
	bool stalls = with_stalls && stalls_in_code(qemu_plugin_tb_vaddr(tb));
	uint64_t cost = 0;

	(void)id;
	for (size_t k = 0; k < qemu_plugin_tb_n_insns(tb); k++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, k);
		void *pc = (void *)qemu_plugin_insn_vaddr(insn);
		uint8_t code[MOST_BYTES];
		size_t size = qemu_plugin_insn_data(insn, code, sizeof(code));

		if (is_pause(code, size))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, pauses, QEMU_PLUGIN_CB_R_REGS, pc);
		else
			cost += cost_of(code, size);
		if (switch_address && (uint64_t)pc == switch_address)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, switches, QEMU_PLUGIN_CB_R_REGS, pc);
		if (stalls && ((!k && stalls_at_block((uint64_t)pc)) || stalls_at_call((uint64_t)pc, code, size)))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, may_stall, QEMU_PLUGIN_CB_R_REGS, NULL);
	}
	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, QEMU_PLUGIN_INLINE_ADD_U64, count, cost);
	qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, turn_ends, QEMU_PLUGIN_CB_R_REGS, QEMU_PLUGIN_COND_GE, count, COUNT_END,
						  (void *)qemu_plugin_tb_vaddr(tb));
}

static void ends(qemu_plugin_id_t id, void *data)
{
	(void)id;
	(void)data;
	samples_end();
	if (report)
		clock_report(report);
}

/* Read NAME=VALUE; an argument that is not known is an error. */
static int read_argument(const char *argument, struct clock_settings *settings, struct samples_settings *sampling,
			 struct stalls_settings *stalling)
{
	const char *value = strchr(argument, '=');
	size_t length = value ? (size_t)(value++ - argument) : 0;

#define IS(name) (length == sizeof(name) - 1 && !memcmp(argument, name, length))
	if (IS("quantum"))
		settings->quantum_ns = strtoull(value, NULL, 0);
	else if (IS("mips"))
		settings->mips = strtoull(value, NULL, 0);
	else if (IS("pause"))
		settings->pause = strtoull(value, NULL, 0);
	else if (IS("lanes"))
		settings->lanes = strtoull(value, NULL, 0);
	else if (IS("report"))
		report = strdup(value);
	else if (IS("samples"))
		sampling->path = strdup(value);
	else if (IS("interval"))
		sampling->interval_ns = strtoull(value, NULL, 0);
	else if (IS("switch"))
		switch_address = strtoull(value, NULL, 0);
	else if (IS("stalls"))
		stalling->path = strdup(value);
	else if (IS("seed"))
		stalling->seed = strtoull(value, NULL, 0);
	else
		return -1;
	return 0;
#undef IS
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv);

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
	struct clock_settings settings = { .quantum_ns = 5000, .mips = 1000, .pause = 140, .lanes = MAX_CPUS };
	struct samples_settings sampling = { .interval_ns = 20000 };
	struct stalls_settings stalling = { 0 };

	(void)info;
	for (int k = 0; k < argc; k++)
		if (read_argument(argv[k], &settings, &sampling, &stalling)) {
			fprintf(stderr, "vtime: %s: no argument of this plugin\n", argv[k]);
			return -1;
		}
	if (!settings.quantum_ns || !settings.mips || !settings.pause || !settings.lanes) {
		fprintf(stderr, "vtime: quantum, mips, pause and lanes: expected numbers above 0\n");
		return -1;
	}
	if (sampling.path && samples_start(&sampling)) {
		fprintf(stderr, "vtime: cannot write samples to %s\n", sampling.path);
		return -1;
	}
	if (stalling.path && stalls_start(&stalling)) {
		fprintf(stderr, "vtime: %s: no file of code and boundaries to stall at\n", stalling.path);
		return -1;
	}
	with_stalls = stalling.path;
	counts = qemu_plugin_scoreboard_new(CACHE_LINE);
	clock_setup(&settings);
	if (hostcalls_are_virtual()) {
		fprintf(stderr, "vtime: this QEMU has no function cpu_get_tsc() that can be replaced\n");
		return -1;
	}
	qemu_plugin_register_vcpu_init_cb(id, cpu_starts);
	qemu_plugin_register_vcpu_idle_cb(id, cpu_halts);
	qemu_plugin_register_vcpu_resume_cb(id, cpu_resumes);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translates);
	qemu_plugin_register_atexit_cb(id, ends, NULL);
	return 0;
}
