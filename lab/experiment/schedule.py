# SPDX-License-Identifier: GPL-2.0
"""Which guests a scenario boots, in which order, what each runs, and how long each will take."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from lab.experiment import pace
from lab.experiment.axes import Contexts, Filesystem, axes_of
from lab.experiment.scenario import Bound, Limit, Machine, Scenario, Window
from lab.experiment.setting import Setting
from lab.machine import devices
from lab.util.grouping import grouped

# For the time remaining, until the first boots tell better: a boot with mkfs and layout, the start of fio and
# the counting of extents, the rate of the final sync, the rate of a job that writes a scenario's files once,
# and a job of unknown length.
BOOT_ESTIMATE_S = 2.5
RUN_ESTIMATE_S = 0.8
SYNC_ESTIMATE_MIB_S = 250.0
# Where a run ends with an amount: on a device that makes tasks sleep, and on another.
SLOW_AMOUNT_ESTIMATE_MIB_S = 30.0
AMOUNT_ESTIMATE_MIB_S = 250.0
FIXED_ESTIMATE_MIB_S = 80.0
OPEN_END_ESTIMATE_S = 60.0
# The same for a guest in virtual time that has one core of the host: a boot with its files, more for each
# CPU, the virtual seconds around a run's window, and what a virtual second of a CPU takes: one that is busy,
# and one that mostly waits for a device.
VIRTUAL_BOOT_ESTIMATE_S = 40.0
VIRTUAL_CPU_ESTIMATE_S = 2.0
VIRTUAL_RUN_ESTIMATE_S = 0.2
HOST_S_PER_CPU_S = 4.0
HOST_S_PER_WAITING_CPU_S = 0.5
# So many times as long with a profile.
PROFILED = 1.6
# How long the kernel may take to find the number of contexts, from one (docs/auto.md).
CLIMB_S = 2.0


@dataclass(frozen=True)
class Step:
    """One run of fio.

    ``dirty_limit_mib`` is None for direct I/O, which changes no limit. ``is_later`` says that its window
    begins later than those of other settings, because the kernel has to find its number first.
    """

    name: str
    setting: Setting
    window: Window
    dirty_limit_mib: int | None
    is_later: bool = False


@dataclass(frozen=True)
class Boot:
    """One guest: a fresh filesystem, and the runs that share it.

    Settings that share a boot differ by what can be changed at any time. ``open_end_s`` is a guess at the
    seconds of a run without a window. ``is_profiled`` asks for a profile of each run, which takes none of the
    guest's time.
    """

    machine: Machine
    cpus: int
    device: str
    fs: Filesystem
    settings: tuple[Setting, ...]
    limits: tuple[Limit, ...]
    direct: Window | None
    round: int
    open_end_s: float = OPEN_END_ESTIMATE_S
    is_profiled: bool = False

    @property
    def setting(self) -> Setting:
        """Return the setting that the guest starts with."""
        return self.settings[0]

    @property
    def device_count(self) -> int:
        """Return how many devices the guest gets: as a bound, a device and filesystem for each CPU."""
        return self.cpus if self.setting.variant == "bdis" else 1

    @property
    def steps(self) -> list[Step]:
        """List the runs in their order."""
        alone = len(self.settings) == 1
        found = [
            Step(
                f"limit-{limit.mib}" if alone else f"{setting.folder}-{limit.mib}",
                setting,
                limit.after(CLIMB_S) if is_later else limit,
                limit.mib,
                is_later,
            )
            for setting in self.settings
            for limit in self.limits
            for is_later in [setting.finds_contexts and limit.ramp_s < CLIMB_S]
        ]
        if self.direct:
            around = self.setting.model_copy(update={"variant": "direct", "contexts": None})
            found.append(Step("direct", around, self.direct, None))
        return found

    @property
    def label(self) -> str:
        """Name the boot's settings in words."""
        cpus = f"{self.cpus} CPUs " if self.machine == "smp" else ""
        return f"{cpus}{self.device} {self.fs} {'; '.join(setting.label for setting in self.settings)}"

    @property
    def folder(self) -> str:
        """Name the folder of the boot's raw data."""
        cpus = f"{self.cpus}cpus-" if self.machine == "smp" else ""
        settings = "-".join(setting.folder for setting in self.settings)
        limits = "-".join(str(limit.mib) for limit in self.limits)
        return f"{cpus}{self.device}-{self.fs}-{settings}-{limits}-round{self.round}"

    @property
    def estimate_s(self) -> float:
        """Guess the seconds that the boot takes, for the time remaining."""
        runs_s = [self._run_s(step.window) for step in self.steps]
        if self.machine == "smp":
            virtual_s = sum(runs_s) + VIRTUAL_RUN_ESTIMATE_S * len(runs_s)
            cpu_s = HOST_S_PER_WAITING_CPU_S if pace.leaves_cpus_idle(self.device) else HOST_S_PER_CPU_S
            if self.is_profiled:
                cpu_s *= PROFILED
            return (
                VIRTUAL_BOOT_ESTIMATE_S + self.cpus * VIRTUAL_CPU_ESTIMATE_S + self.cpus * virtual_s * cpu_s
            )
        synced_mib = sum(step.dirty_limit_mib or 0 for step in self.steps)
        return BOOT_ESTIMATE_S + sum(runs_s) + len(runs_s) * RUN_ESTIMATE_S + synced_mib / SYNC_ESTIMATE_MIB_S

    def _run_s(self, window: Window) -> float:
        if window.between_mib:
            slow = devices.load(self.device).makes_tasks_sleep
            return window.between_mib[1] / (SLOW_AMOUNT_ESTIMATE_MIB_S if slow else AMOUNT_ESTIMATE_MIB_S)
        return window.ramp_s + (window.window_s or self.open_end_s)


def boots(chosen: Scenario) -> list[Boot]:
    """List the boots in the order in which they run.

    Within a round, stock, each number of contexts and separate BDIs follow each other on one filesystem, so
    that a drift of the machine meets all of them; the first one changes from round to round. In virtual time
    nothing drifts: settings that one filesystem can have in turn share a boot, if the scenario lets them.
    """
    return [
        boot
        for device in chosen.devices
        for number in range(chosen.repetitions)
        for cpus in [chosen.guest.cpus, *(chosen.scaling if device == chosen.devices[0] else [])]
        for fs in chosen.filesystems
        for boot in _on_one_filesystem(chosen, device, fs, cpus, number)
    ]


def _on_one_filesystem(chosen: Scenario, device: str, fs: Filesystem, cpus: int, number: int) -> list[Boot]:
    longer = max(1.0, chosen.guest.cpus / cpus)
    limits = tuple(limit.longer(longer) for limit in chosen.limits)
    parts = [limits] if chosen.reusable_files else [(limit,) for limit in limits]
    settings = _rotated(_settings(chosen, cpus), number)
    may_share = chosen.virtual and chosen.reusable_files and not chosen.own_boots
    together = _mergeable(settings) if may_share else [(one,) for one in settings]
    has_direct = "direct" in _bounds(chosen, cpus)
    return [
        Boot(
            machine=chosen.guest.machine,
            cpus=cpus,
            device=device,
            fs=fs,
            settings=shared,
            limits=part,
            direct=chosen.direct
            if shared[0].variant == "stock" and has_direct and part is parts[0]
            else None,
            round=number + 1,
            open_end_s=_open_end_s(chosen, cpus),
        )
        for part in parts
        for shared in together
    ]


def _open_end_s(chosen: Scenario, cpus: int) -> float:
    """Guess the seconds of a run that has no window, for the time remaining."""
    if chosen.files is None:
        return OPEN_END_ESTIMATE_S
    return len(chosen.files.names_for(cpus)) * chosen.files.size_for(cpus) / FIXED_ESTIMATE_MIB_S


def _settings(chosen: Scenario, cpus: int) -> list[Setting]:
    """List the settings in the order of a round; those that differ by layout only are neighbours."""
    found = [Setting(variant="stock", contexts=1)]
    if chosen.prepared:
        found.append(Setting(variant="prepared", contexts=1))
    for contexts in _contexts(chosen, cpus):
        number = contexts if isinstance(contexts, int) else None
        found += [
            Setting(variant="parallel", contexts=number, **choice) for choice in _choices(chosen, number)
        ]
    if "bdis" in _bounds(chosen, cpus):
        found.append(Setting(variant="bdis", contexts=None))
    return [setting.model_copy(update={"layout": layout}) for setting in found for layout in chosen.layouts]


def _choices(chosen: Scenario, contexts: int | None) -> list[dict[str, Any]]:
    """Return every combination of what a scenario lists for the axes of our kernel and its contexts."""
    listed = {
        name: (axis.applies("parallel", contexts) and chosen.values_of(axis)) or [None]
        for name, axis in axes_of("kernel", "contexts")
    }
    return [dict(zip(listed, values, strict=True)) for values in itertools.product(*listed.values())]


def _contexts(chosen: Scenario, cpus: int) -> list[Contexts]:
    """Return the numbers of contexts to measure on a guest with so many CPUs."""
    if cpus == chosen.guest.cpus:
        return chosen.contexts
    asked: list[Contexts] = [cpus if one == "cpus" else one for one in chosen.scaling_contexts]
    return [one for one in dict.fromkeys(asked) if not isinstance(one, int) or one <= cpus]


def _bounds(chosen: Scenario, cpus: int) -> list[Bound]:
    """Return the bounds to measure on a guest with so many CPUs."""
    if cpus == chosen.guest.cpus:
        return chosen.bounds
    return [bound for bound, most_cpus in chosen.scaling_bounds.items() if cpus <= most_cpus]


def _rotated(settings: list[Setting], number: int) -> list[Setting]:
    first = number % len(settings)
    return settings[first:] + settings[:first]


def _mergeable(settings: list[Setting]) -> list[tuple[Setting, ...]]:
    """Put together what differs only by what can be changed under a mounted filesystem."""
    return [tuple(group) for group in grouped(lambda one: one.before_mount, settings).values()]
