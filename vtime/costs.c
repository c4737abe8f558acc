// SPDX-License-Identifier: GPL-2.0
/*
 * The cost of instructions, in ordinary instructions.
 *
 * One instruction is one unit of time, whatever it does: there are no caches here, and no pipeline. An exception is what
 * takes tens of cycles on every processor, and happens often enough in kernel code to count. The figures are those of
 * current x86 servers, from the places named; docs/machine.md has the table.
 */
#include "costs.h"

enum {
	ORDINARY = 1,
	LOCKED = 20,		/* Agner Fog, Instruction tables: LOCK ADD, XADD, CMPXCHG 18 to 20 cycles on Skylake to Ice Lake */
	FENCE = 33,		/* the same: MFENCE 33 */
	DIVIDE = 26,		/* the same: DIV r64 26 to 42 on Skylake, 14 to 18 on Ice Lake */
	READ_TSC = 25,		/* the same: RDTSC 25 */
	SERIALISE = 100,	/* the same: CPUID 100 to 250 */
	WRITE_MSR = 100,	/* the same: WRMSR; as much again for the interrupt that a write to the x2APIC sends */
	FLUSH_TLB = 100,	/* the same: INVLPG 120 to 215; MOV CR3 with its refills is no less */
	PORT = 1000,		/* PCI, order of magnitude of a read over the bus: 1 us */
};

struct instruction {
	bool lock, rep, operand_is_memory;
	uint8_t opcode[3], modrm;
};

static bool is_prefix(uint8_t byte)
{
	return byte == 0x66 || byte == 0x67 || byte == 0xf0 || byte == 0xf2 || byte == 0xf3 || byte == 0x2e ||
	       byte == 0x36 || byte == 0x3e || byte == 0x26 || byte == 0x64 || byte == 0x65;
}

static struct instruction decode(const uint8_t *code, size_t size)
{
	struct instruction found = { 0 };
	size_t k = 0;

	for (; k < size && is_prefix(code[k]); k++) {
		found.lock |= code[k] == 0xf0;
		found.rep |= code[k] == 0xf3;
	}
	/* REX */
	if (k < size && (code[k] & 0xf0) == 0x40)
		k++;
	for (size_t n = 0; n < sizeof(found.opcode) && k + n < size; n++)
		found.opcode[n] = code[k + n];
	found.modrm = found.opcode[found.opcode[0] == 0x0f ? 2 : 1];
	found.operand_is_memory = found.modrm < 0xc0;
	return found;
}

/** is_pause - tell whether an instruction is PAUSE, by which a CPU says that it spins */
bool is_pause(const uint8_t *code, size_t size)
{
	struct instruction this = decode(code, size);

	return this.rep && this.opcode[0] == 0x90;
}

static uint64_t cost_of_two_byte(const struct instruction *this)
{
	unsigned int reg = this->modrm >> 3 & 7;

	switch (this->opcode[1]) {
	case 0x01:	/* INVLPG m; RDTSCP */
		if (this->modrm == 0xf9)
			return READ_TSC;
		return reg == 7 && this->operand_is_memory ? FLUSH_TLB : ORDINARY;
	case 0x22:	/* MOV CR3 */
		return reg == 3 ? FLUSH_TLB : ORDINARY;
	case 0x30:
		return WRITE_MSR;
	case 0x31:
		return READ_TSC;
	case 0xa2:
		return SERIALISE;
	case 0xae:	/* MFENCE */
		return reg == 6 && !this->operand_is_memory ? FENCE : ORDINARY;
	default:
		return ORDINARY;
	}
}

/** cost_of - return what an instruction costs, PAUSE excepted */
uint64_t cost_of(const uint8_t *code, size_t size)
{
	struct instruction this = decode(code, size);
	unsigned int reg = this.modrm >> 3 & 7;

	if (this.lock)
		return LOCKED;
	switch (this.opcode[0]) {
	case 0x0f:
		return cost_of_two_byte(&this);
	case 0x86:	/* XCHG with memory locks without saying so */
	case 0x87:
		return this.operand_is_memory ? LOCKED : ORDINARY;
	case 0xf6:
	case 0xf7:	/* DIV, IDIV */
		return reg >= 6 ? DIVIDE : ORDINARY;
	case 0xe4 ... 0xe7:
	case 0xec ... 0xef:
		return PORT;
	default:
		return ORDINARY;
	}
}
