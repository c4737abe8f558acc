// SPDX-License-Identifier: GPL-2.0
/*
 * The clocks of the virtual CPUs, and which of them may run.
 *
 * Each virtual CPU is a thread of the host. It runs while its clock is less than a quantum ahead of the CPU that is
 * furthest behind, then it waits here for the others. Of those that wait, the one that is furthest behind is next. As many run
 * at once as the host gives this process CPUs (lanes); each stays on one of them, for a wake-up across the host's CPUs costs
 * several times what a quantum takes to emulate. With one lane, CPUs run strictly one after the other.
 *
 * A halted CPU takes no part, and continues with the time of the one that wakes it, from which moment on the others wait for it:
 * its thread may take long to wake up. Where all are halted, time jumps to the next deadline of QEMU's main loop. While the
 * main loop works (it runs the timers of all devices), no CPU gets a new quantum: so a timer acts at its time, however late
 * the host runs the main loop's thread.
 *
 * A CPU that executes PAUSE waits until no other one is behind it, and until it has looked again the others do not pass
 * it: what ends its spinning is seen when it happens, not a quantum later, nor a quantum too early. What it waits grows with
 * the time that it has been spinning, up to SPIN_LONGEST PAUSEs: so a longer wait costs the host less, and is off by an eighth or
 * by that. In a queue of waiters each is late after the one before it; were what each waits not limited, that would add up.
 *
 * QEMU at times needs all virtual CPUs to leave the code that they run (exclusive sections, stopping the machine). A CPU that
 * waits here could not. So whoever waits for that opens the gate: all return, run one block of code without
 * having their turn, and leave.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "clock.h"
#include "host.h"
#include "mix.h"

/* What a halted CPU takes to run again: exit latency of C1 on x86 servers (drivers/idle/intel_idle.c: 1 to 2 us). */
enum { WAKE_NS = 1000 };
enum { SPIN_GROWTH = 8, SPIN_GAP = 64, SPIN_LONGEST = 4 };
enum { ANY_LANE = -1 };

enum state { HALTED, WAKING, READY, RUNNING };

/*
 * All under lock, but for go, and for count, which its own thread moves on as it executes. While a CPU runs, only its own
 * thread changes its clock, armed and last_pause: that thread may read them without the lock.
 */
static struct vcpu {
	uint64_t *count;	/* instructions: its own thread's, others read it to know how far it is */
	uint64_t clock;		/* instructions: up to count == base */
	uint64_t base;
	uint64_t used;		/* instructions executed, PAUSE and its waits included */
	uint64_t spins_since, last_pause;
	uint64_t stall;		/* instructions for which it still stalls: its own thread's */
	_Atomic uint32_t go;	/* futex: look again */
	enum state state;
	bool armed;		/* RUNNING, and knows it: count runs from base to COUNT_END */
	bool spins;
	int lane;
	pid_t thread;
} cpus[MAX_CPUS];

/*
 * Taken for short by the main loop and the CPUs' threads, which may hold any lock of QEMU; nothing is taken under it. All that
 * follows is under it, but for set, quantum, n_lanes and host_start_ns, which never change after clock_setup(), and atomics.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct lane {
	struct vcpu *runs;
	int host_cpu;
	uint64_t idle_since;	/* host ns, 0: not idle, or nobody wanted to run */
} lanes[MAX_CPUS];

static struct clock_settings set;
static unsigned int n_cpus, n_lanes, awake;
static uint64_t quantum;		/* instructions */
static uint64_t halted_at;		/* instructions: the time while no CPU is awake */
static uint64_t deadline = NEVER;	/* ns, of the main loop */
static bool main_works = true;
static _Atomic unsigned int gate;
static _Atomic uint64_t last_read_ns;
static uint64_t host_start_ns;
static struct {
	uint64_t quanta, switches, moves, pauses, jumps, jumped_ns, main_loops, gates, lost_ns, stalls, stalled_ns;
} counts;

static uint64_t to_ns(uint64_t instructions)
{
	return instructions / set.mips * 1000 + instructions % set.mips * 1000 / set.mips;
}

static uint64_t to_instructions(uint64_t ns)
{
	return ns / 1000 * set.mips + ns % 1000 * set.mips / 1000;
}

/* Rounded up: the first instruction at which a deadline has passed. */
static uint64_t deadline_to_instructions(uint64_t ns)
{
	uint64_t at = to_instructions(ns);

	return to_ns(at) < ns ? at + 1 : at;
}

static uint64_t position(const struct vcpu *cpu)
{
	return cpu->armed ? cpu->clock + (*(volatile uint64_t *)cpu->count - cpu->base) : cpu->clock;
}

/* The time: that of the CPU which is furthest behind. */
static uint64_t now(void)
{
	uint64_t least = NEVER;

	if (!awake)
		return halted_at;
	for (unsigned int k = 0; k < n_cpus; k++)
		if (cpus[k].state != HALTED && position(&cpus[k]) < least)
			least = position(&cpus[k]);
	return least;
}

static void wake(struct vcpu *cpu)
{
	atomic_store(&cpu->go, 1);
	syscall(SYS_futex, &cpu->go, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* The time at which the first CPU that spins looks again. */
static uint64_t next_look(const struct vcpu *but)
{
	uint64_t first = NEVER;

	for (unsigned int k = 0; k < n_cpus; k++)
		if (&cpus[k] != but && cpus[k].state == READY && cpus[k].spins && cpus[k].clock < first)
			first = cpus[k].clock;
	return first;
}

/* Several at once as far as the quantum goes, but nobody passes one that spins. */
static bool may_run(const struct vcpu *cpu, uint64_t least, uint64_t look)
{
	if (cpu->clock <= least)
		return true;
	return n_lanes > 1 && !cpu->spins && cpu->clock < least + quantum && cpu->clock < look;
}

/* Choose who is next on a lane: of its own CPUs the one furthest behind, else one that another lane has no time for. */
static struct vcpu *next_on(unsigned int lane, uint64_t least)
{
	struct vcpu *own = NULL, *other = NULL;
	uint64_t look = next_look(NULL);

	for (unsigned int k = 0; k < n_cpus; k++) {
		struct vcpu *cpu = &cpus[k];
		struct vcpu **best = cpu->lane == (int)lane || cpu->lane == ANY_LANE ? &own : &other;

		if (cpu->state == READY && may_run(cpu, least, look) && (!*best || cpu->clock < (*best)->clock))
			*best = cpu;
	}
	return own ? own : other;
}

/*
 * A quantum, or up to a quarter of one less. Were all alike, what two CPUs do in step, such as taking a lock for each page,
 * would meet the ends of turns always at the same place or never: one stream of writes is 5% slower by some quanta then.
 */
static uint64_t length_of_turn(void)
{
	return quantum - mix(counts.quanta) % (quantum / 4 + 1);
}

static uint64_t end_of_turn(const struct vcpu *cpu, uint64_t least)
{
	uint64_t due = deadline == NEVER ? NEVER : deadline_to_instructions(deadline);
	uint64_t end = cpu->clock + length_of_turn(), look = next_look(cpu);

	if (look < end)
		end = look;
	if (due > least && due < end)
		end = due;
	return end > cpu->clock ? end : cpu->clock + 1;
}

static void grant(struct vcpu *cpu, unsigned int lane, uint64_t least)
{
	if (cpu->lane != (int)lane) {
		cpu_set_t only;

		CPU_ZERO(&only);
		CPU_SET(lanes[lane].host_cpu, &only);
		sched_setaffinity(cpu->thread, sizeof(only), &only);
		cpu->lane = (int)lane;
		counts.moves++;
	}
	if (lanes[lane].idle_since) {
		counts.lost_ns += host_ns() - lanes[lane].idle_since;
		lanes[lane].idle_since = 0;
	}
	lanes[lane].runs = cpu;
	cpu->base = COUNT_END - (end_of_turn(cpu, least) - cpu->clock);
	cpu->state = RUNNING;
	cpu->spins = false;
	counts.quanta++;
}

/* Give every free lane to a CPU; called whenever one may have become free or a CPU ready. */
static void dispatch(const struct vcpu *me)
{
	uint64_t least;

	if (main_works || !awake)
		return;
	least = now();
	if (deadline != NEVER && least >= deadline_to_instructions(deadline)) {
		main_works = true;
		wake_main_loop();
		return;
	}
	for (unsigned int k = 0; k < n_lanes; k++) {
		struct vcpu *cpu = lanes[k].runs ? NULL : next_on(k, least);

		if (cpu) {
			grant(cpu, k, least);
			if (cpu != me) {
				counts.switches++;
				wake(cpu);
			}
		} else if (!lanes[k].runs && !lanes[k].idle_since && awake > n_lanes) {
			lanes[k].idle_since = host_ns();
		}
	}
}

/* Move a CPU's clock on by what it has executed; under lock, by its own thread. */
static void account(struct vcpu *cpu)
{
	uint64_t from = cpu->armed ? cpu->base : COUNT_END;

	if (*cpu->count > from) {
		cpu->clock += *cpu->count - from;
		cpu->used += *cpu->count - from;
	}
	*cpu->count = COUNT_END;
	cpu->armed = false;
}

static void leave_lane(struct vcpu *cpu)
{
	if (cpu->state == RUNNING)
		lanes[cpu->lane].runs = NULL;
}

/* Wait for a turn; called and left with the lock held. */
static void wait_for_turn(struct vcpu *cpu)
{
	dispatch(cpu);
	while (cpu->state != RUNNING && !gate) {
		atomic_store(&cpu->go, 0);
		pthread_mutex_unlock(&lock);
		while (!cpu->go)
			syscall(SYS_futex, &cpu->go, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
		pthread_mutex_lock(&lock);
	}
	if (cpu->state == RUNNING) {
		*cpu->count = cpu->base;
		cpu->armed = true;
	}
}

static void end_turn(struct vcpu *cpu)
{
	account(cpu);
	leave_lane(cpu);
	cpu->state = READY;
	wait_for_turn(cpu);
}

/* Let the turns of a CPU that stalls pass; one that the gate has let go stalls on at its next turn. */
static void pass_stall(struct vcpu *cpu)
{
	while (cpu->stall && cpu->armed) {
		uint64_t left = COUNT_END - *cpu->count, step = cpu->stall < left ? cpu->stall : left;

		cpu->stall -= step;
		*cpu->count += step;
		if (step == left)
			end_turn(cpu);
	}
}

/**
 * clock_wait - end a CPU's turn, and wait for the next one
 * @index: the CPU, whose thread this is; it has reached COUNT_END
 */
void clock_wait(unsigned int index)
{
	struct vcpu *cpu = &cpus[index];

	pthread_mutex_lock(&lock);
	/* Its turn may have been given to it while it was on its way here from a halt. */
	if (cpu->armed || cpu->state != RUNNING)
		end_turn(cpu);
	else
		wait_for_turn(cpu);
	pass_stall(cpu);
	pthread_mutex_unlock(&lock);
}

/**
 * clock_stall - let a CPU execute nothing for some time, and take no interrupt, while the others go on
 * @index: the CPU, whose thread this is
 * @ns: how long
 */
void clock_stall(unsigned int index, uint64_t ns)
{
	struct vcpu *cpu = &cpus[index];

	pthread_mutex_lock(&lock);
	counts.stalls++;
	counts.stalled_ns += ns;
	cpu->stall += to_instructions(ns);
	pass_stall(cpu);
	pthread_mutex_unlock(&lock);
}

/**
 * clock_pause - let a CPU that spins wait until no other one is behind it
 * @index: the CPU, whose thread this is
 */
void clock_pause(unsigned int index)
{
	struct vcpu *cpu = &cpus[index];
	uint64_t least = set.pause, step;

	pthread_mutex_lock(&lock);
	counts.pauses++;
	account(cpu);
	if (cpu->clock - cpu->last_pause > SPIN_GAP)
		cpu->spins_since = cpu->clock;
	step = (cpu->clock - cpu->spins_since) / SPIN_GROWTH;
	step = step < least ? least : step > SPIN_LONGEST * least ? SPIN_LONGEST * least : step;
	cpu->clock += step;
	cpu->used += step;
	cpu->last_pause = cpu->clock;
	leave_lane(cpu);
	cpu->state = READY;
	cpu->spins = true;
	wait_for_turn(cpu);
	pthread_mutex_unlock(&lock);
}

/** clock_spins - tell whether a CPU has executed a PAUSE a moment ago; by its own thread */
bool clock_spins(unsigned int index)
{
	return position(&cpus[index]) - cpus[index].last_pause <= SPIN_GAP;
}

/** clock_cpu_used - return the CPU time that a CPU has used up to its last turn's end, in ns; by its own thread */
uint64_t clock_cpu_used(unsigned int index)
{
	return to_ns(cpus[index].used);
}

/** clock_cpu_counts - say where a CPU counts instructions; before any CPU executes some */
void clock_cpu_counts(unsigned int index, uint64_t *count)
{
	cpus[index].count = count;
	*count = COUNT_END;
}

/** clock_cpu_starts - a CPU is there */
void clock_cpu_starts(unsigned int index)
{
	struct vcpu *cpu = &cpus[index];

	pthread_mutex_lock(&lock);
	if (index >= n_cpus)
		n_cpus = index + 1;
	cpu->thread = (pid_t)syscall(SYS_gettid);
	/* Who is woken does not preempt its waker, which goes to sleep next and still holds the lock. */
	sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){});
	cpu->lane = ANY_LANE;
	cpu->clock = now();
	cpu->state = READY;
	awake++;
	pthread_mutex_unlock(&lock);
}

/** clock_cpu_halts - a CPU has nothing to execute; by its own thread */
void clock_cpu_halts(unsigned int index)
{
	struct vcpu *cpu = &cpus[index];
	bool was_last;

	if (!cpu->count)
		return;
	pthread_mutex_lock(&lock);
	account(cpu);
	leave_lane(cpu);
	if (cpu->state != HALTED) {
		cpu->state = HALTED;
		awake--;
	}
	cpu->spins = false;
	was_last = !awake;
	if (cpu->clock > halted_at)
		halted_at = cpu->clock;
	if (was_last)
		for (unsigned int k = 0; k < n_lanes; k++)
			lanes[k].idle_since = 0;
	dispatch(NULL);
	pthread_mutex_unlock(&lock);
	if (was_last)
		wake_main_loop();
}

/**
 * clock_cpu_wakes - a halted CPU's thread has been told to look whether there is something to execute
 * @index: the CPU
 * @waker: the CPU whose thread this is, or -1 for another thread
 */
void clock_cpu_wakes(unsigned int index, int waker)
{
	struct vcpu *cpu = &cpus[index];
	uint64_t at;

	pthread_mutex_lock(&lock);
	if (cpu->state == HALTED) {
		at = (waker >= 0 ? position(&cpus[waker]) : now()) + to_instructions(WAKE_NS);
		if (at > cpu->clock)
			cpu->clock = at;
		cpu->state = WAKING;
		awake++;
	}
	pthread_mutex_unlock(&lock);
}

/** clock_cpu_sleeps_on - a CPU has looked, and there was nothing; by its own thread */
void clock_cpu_sleeps_on(unsigned int index)
{
	bool was_last = false;

	pthread_mutex_lock(&lock);
	if (cpus[index].state == WAKING) {
		cpus[index].state = HALTED;
		awake--;
		was_last = !awake;
		dispatch(NULL);
	}
	pthread_mutex_unlock(&lock);
	if (was_last)
		wake_main_loop();
}

/** clock_cpu_resumes - a CPU has something to execute again; by its own thread, which holds QEMU's big lock */
void clock_cpu_resumes(unsigned int index)
{
	struct vcpu *cpu = &cpus[index];

	if (!cpu->count)
		return;
	clock_cpu_wakes(index, -1);
	pthread_mutex_lock(&lock);
	*cpu->count = COUNT_END;
	cpu->state = READY;
	dispatch(NULL);
	pthread_mutex_unlock(&lock);
}

bool clock_cpu_is_halted(unsigned int index)
{
	bool halted;

	pthread_mutex_lock(&lock);
	halted = cpus[index].state == HALTED || cpus[index].state == WAKING;
	pthread_mutex_unlock(&lock);
	return halted;
}

/* Clocks of CPUs differ by up to a quantum; whoever reads them must not see time run backwards. */
static uint64_t never_backwards(uint64_t ns)
{
	uint64_t last = atomic_load(&last_read_ns);

	while (ns > last)
		if (atomic_compare_exchange_weak(&last_read_ns, &last, ns))
			return ns;
	return last;
}

/** clock_cpu_now - read the time of a CPU, which is that of its next instruction; by its own thread */
uint64_t clock_cpu_now(unsigned int index)
{
	return never_backwards(to_ns(position(&cpus[index])));
}

/** clock_main_now - read the time that all CPUs have reached */
uint64_t clock_main_now(void)
{
	uint64_t ns;

	pthread_mutex_lock(&lock);
	ns = to_ns(now());
	pthread_mutex_unlock(&lock);
	return ns;
}

/**
 * clock_main_waits - the main loop has done what there was to do
 * @until: its next deadline, in ns, or NEVER
 *
 * Return: MAIN_WAITS where it has to sleep until it is woken; CPUs go on meanwhile. With the others it must not sleep.
 */
enum main_turn clock_main_waits(uint64_t until)
{
	enum main_turn turn = MAIN_WAITS;

	pthread_mutex_lock(&lock);
	counts.main_loops++;
	deadline = until;
	if (until != NEVER && now() >= deadline_to_instructions(until))
		turn = MAIN_DUE;
	else if (until != NEVER && !awake)
		turn = MAIN_ALL_HALTED;
	main_works = turn == MAIN_DUE;
	dispatch(NULL);
	pthread_mutex_unlock(&lock);
	return turn;
}

/**
 * clock_main_runs - the main loop has something to do: no CPU gets a new turn until it waits again
 *
 * Called by its own thread when it is awake, and by whoever is about to wake it.
 */
void clock_main_runs(void)
{
	pthread_mutex_lock(&lock);
	main_works = true;
	pthread_mutex_unlock(&lock);
}

/**
 * clock_jump - let time be that of the next deadline, as no CPU has anything to do before it
 * @until: the deadline, in ns
 *
 * Return: whether they are still halted.
 */
bool clock_jump(uint64_t until)
{
	uint64_t at = deadline_to_instructions(until);
	bool halted;

	pthread_mutex_lock(&lock);
	halted = !awake;
	if (halted && at > halted_at) {
		counts.jumps++;
		counts.jumped_ns += to_ns(at - halted_at);
		halted_at = at;
	}
	if (halted)
		main_works = true;
	pthread_mutex_unlock(&lock);
	return halted;
}

/** clock_gate_opens - let every CPU that waits for its turn leave the code that it runs */
void clock_gate_opens(void)
{
	pthread_mutex_lock(&lock);
	gate++;
	counts.gates++;
	for (unsigned int k = 0; k < n_cpus; k++)
		if (cpus[k].state == READY)
			wake(&cpus[k]);
	pthread_mutex_unlock(&lock);
}

/** clock_gate_closes - what the gate was opened for is over */
void clock_gate_closes(void)
{
	pthread_mutex_lock(&lock);
	gate--;
	dispatch(NULL);
	pthread_mutex_unlock(&lock);
}

/** clock_setup - choose the settings, before the first CPU starts */
void clock_setup(const struct clock_settings *settings)
{
	cpu_set_t allowed;

	set = *settings;
	quantum = to_instructions(set.quantum_ns);
	host_start_ns = host_ns();
	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (int k = 0; k < CPU_SETSIZE && n_lanes < MAX_CPUS && n_lanes < set.lanes; k++)
		if (CPU_ISSET(k, &allowed))
			lanes[n_lanes++].host_cpu = k;
}

/** clock_report - write what was counted as a JSON object to the file @path */
void clock_report(const char *path)
{
	FILE *file = fopen(path, "w");
	uint64_t used = 0;

	if (!file)
		return;
	pthread_mutex_lock(&lock);
	for (unsigned int k = 0; k < n_cpus; k++)
		used += to_ns(cpus[k].used);
	fprintf(file,
		"{\"virtual_ns\": %" PRIu64 ", \"host_ns\": %" PRIu64 ", \"cpus\": %u, \"lanes\": %u, \"used_ns\": %" PRIu64
		", \"quanta\": %" PRIu64 ", \"switches\": %" PRIu64 ", \"moves\": %" PRIu64 ", \"pauses\": %" PRIu64
		", \"jumps\": %" PRIu64 ", \"jumped_ns\": %" PRIu64 ", \"main_loops\": %" PRIu64 ", \"gates\": %" PRIu64
		", \"lost_ns\": %" PRIu64 ", \"stalls\": %" PRIu64 ", \"stalled_ns\": %" PRIu64 "}\n",
		to_ns(now()), host_ns() - host_start_ns, n_cpus, n_lanes, used, counts.quanta, counts.switches,
		counts.moves, counts.pauses, counts.jumps, counts.jumped_ns, counts.main_loops, counts.gates,
		counts.lost_ns / n_lanes, counts.stalls, counts.stalled_ns);
	pthread_mutex_unlock(&lock);
	fclose(file);
}
