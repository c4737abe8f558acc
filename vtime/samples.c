// SPDX-License-Identifier: GPL-2.0
/*
 * A profiler that costs the guest nothing: it looks at a CPU while that waits for its turn, and no virtual time passes.
 *
 * lab/result/profile.py reads the file. It holds a magic number, then records: struct record, followed by return addresses,
 * innermost first. Kernels keep frame pointers, so the chain of %rbp is the stack.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "clock.h"
#include "qemu-api.h"
#include "samples.h"

enum { RUNNING = 1, SWITCH = 2 };
enum { DEEPEST = 64, BUFFER_BYTES = 1 << 20 };
static const char MAGIC[8] = "PWBVT001";
#define KERNEL_SPACE 0xffff800000000000
#define KERNEL_CODE 0xffffffff80000000

struct record {
	uint8_t kind;
	uint8_t cpu;
	uint16_t depth;
	uint32_t top;		/* RUNNING: low half of the word at %rsp where that is an address of the kernel's code, else 0 */
	uint64_t time_ns;
	uint64_t a;		/* RUNNING: CPU time that it stands for, in ns; SWITCH: the task that leaves */
	uint64_t b;		/* RUNNING: whether the CPU spins; SWITCH: the task that comes */
};

static FILE *file;
static uint64_t interval_ns;
/* Under it: what is written to file. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Each CPU's is used by its own thread only. */
static struct {
	struct qemu_plugin_register *rbp, *rsp, *rdi, *rsi;
	struct bytes *bytes;
	uint64_t sampled_ns;
} cpus[MAX_CPUS];

static uint64_t read_register(unsigned int cpu, struct qemu_plugin_register *handle)
{
	uint64_t value = 0;

	g_byte_array_set_size(cpus[cpu].bytes, 0);
	if (qemu_plugin_read_register(handle, cpus[cpu].bytes) == sizeof(value))
		memcpy(&value, cpus[cpu].bytes->data, sizeof(value));
	return value;
}

/* Where the kernel's entry code keeps the registers of what it interrupted: struct pt_regs. */
enum { REGS_RBP = 4, REGS_RIP = 16, REGS_CS = 17, REGS_WORDS };

static int read_words(unsigned int cpu, uint64_t address, uint64_t *words, size_t count)
{
	if (!qemu_plugin_read_memory_vaddr(address, cpus[cpu].bytes, count * sizeof(*words)))
		return 0;
	memcpy(words, cpus[cpu].bytes->data, count * sizeof(*words));
	return 1;
}

/*
 * Follow the chain of frames. Interrupts have a stack of their own, anywhere in memory, and mark what they interrupted
 * with the address of its registers plus one in place of a frame (ENCODE_FRAME_POINTER in the kernel).
 */
static unsigned int walk(unsigned int cpu, uint64_t frame, uint64_t *stack, unsigned int depth)
{
	while (depth < DEEPEST && frame >= KERNEL_SPACE) {
		uint64_t words[REGS_WORDS], address;

		if (frame % sizeof(frame) == 1) {
			if (!read_words(cpu, frame - 1, words, REGS_WORDS) || words[REGS_CS] & 3)
				break;
			frame = words[REGS_RBP];
			address = words[REGS_RIP];
		} else if (frame % sizeof(frame) == 0 && read_words(cpu, frame, words, 2)) {
			frame = words[0];
			address = words[1];
		} else {
			break;
		}
		if (address < KERNEL_SPACE)
			break;
		stack[depth++] = address;
	}
	return depth;
}

static void write_record(struct record *record, const uint64_t *stack)
{
	pthread_mutex_lock(&lock);
	if (file) {
		fwrite(record, sizeof(*record), 1, file);
		fwrite(stack, sizeof(*stack), record->depth, file);
	}
	pthread_mutex_unlock(&lock);
}

/** samples_running - record what a CPU executes, if it is time again; by its own thread, at @pc */
void samples_running(unsigned int cpu, uint64_t pc)
{
	uint64_t stack[DEEPEST] = { pc }, used_ns, top;
	struct record record = { .kind = RUNNING, .cpu = (uint8_t)cpu, .depth = 1 };

	if (!file)
		return;
	used_ns = clock_cpu_used(cpu) - cpus[cpu].sampled_ns;
	if (used_ns < interval_ns)
		return;
	cpus[cpu].sampled_ns += used_ns;
	record.time_ns = clock_cpu_now(cpu);
	record.a = used_ns;
	record.b = clock_spins(cpu);
	if (pc >= KERNEL_SPACE) {
		record.depth = (uint16_t)walk(cpu, read_register(cpu, cpus[cpu].rbp), stack, 1);
		/* At a function's first instruction %rbp is still its caller's, whose own address is only here. */
		if (read_words(cpu, read_register(cpu, cpus[cpu].rsp), &top, 1) && top >= KERNEL_CODE)
			record.top = (uint32_t)top;
	}
	write_record(&record, stack);
}

/** samples_switch - record that one task leaves a CPU to another, at __switch_to_asm(); by the CPU's thread */
void samples_switch(unsigned int cpu)
{
	struct record record = { .kind = SWITCH, .cpu = (uint8_t)cpu };
	uint64_t stack[DEEPEST];

	if (!file)
		return;
	record.time_ns = clock_cpu_now(cpu);
	record.a = read_register(cpu, cpus[cpu].rdi);
	record.b = read_register(cpu, cpus[cpu].rsi);
	record.depth = (uint16_t)walk(cpu, read_register(cpu, cpus[cpu].rbp), stack, 0);
	write_record(&record, stack);
}

/** samples_cpu_starts - a CPU is there; by its own thread */
void samples_cpu_starts(unsigned int cpu)
{
	struct registers *registers;

	if (!file)
		return;
	registers = qemu_plugin_get_registers();
	for (unsigned int k = 0; k < registers->count; k++) {
		if (!strcmp(registers->data[k].name, "rbp"))
			cpus[cpu].rbp = registers->data[k].handle;
		if (!strcmp(registers->data[k].name, "rsp"))
			cpus[cpu].rsp = registers->data[k].handle;
		if (!strcmp(registers->data[k].name, "rdi"))
			cpus[cpu].rdi = registers->data[k].handle;
		if (!strcmp(registers->data[k].name, "rsi"))
			cpus[cpu].rsi = registers->data[k].handle;
	}
	cpus[cpu].bytes = g_byte_array_new();
}

/** samples_start - begin to record; returns -1 where the file cannot be written */
int samples_start(const struct samples_settings *settings)
{
	interval_ns = settings->interval_ns;
	file = fopen(settings->path, "w");
	if (!file)
		return -1;
	setvbuf(file, NULL, _IOFBF, BUFFER_BYTES);
	fwrite(MAGIC, sizeof(MAGIC), 1, file);
	return 0;
}

/** samples_end - write what is left */
void samples_end(void)
{
	pthread_mutex_lock(&lock);
	if (file)
		fclose(file);
	file = NULL;
	pthread_mutex_unlock(&lock);
}
