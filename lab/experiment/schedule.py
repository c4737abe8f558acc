# SPDX-License-Identifier: GPL-2.0
"""Which guests a scenario boots, in which order, and how long each will take."""

from __future__ import annotations

from dataclasses import dataclass

from lab.experiment.published import Affinity, AgMode, Filesystem, Placement
from lab.experiment.scenario import Limit, Scenario, Window
from lab.experiment.setting import Setting

# For the time remaining, until the first boots tell better: a boot with mkfs and layout, the start of fio and
# the counting of extents, the rate of the final sync, the rate of a job that writes a scenario's files once,
# and a job of unknown length.
BOOT_ESTIMATE_S = 2.5
RUN_ESTIMATE_S = 0.8
SYNC_ESTIMATE_MIB_S = 250.0
# Where a run ends with an amount: such scenarios are of slow devices.
AMOUNT_ESTIMATE_MIB_S = 30.0
FIXED_ESTIMATE_MIB_S = 80.0
OPEN_END_ESTIMATE_S = 60.0


@dataclass(frozen=True)
class Boot:
    """One guest: a fresh filesystem, and the runs that share it.

    ``open_end_s`` is a guess at the seconds of a run without a window.
    """

    device: str
    fs: Filesystem
    setting: Setting
    limits: tuple[Limit, ...]
    direct: Window | None
    round: int
    open_end_s: float = OPEN_END_ESTIMATE_S

    @property
    def label(self) -> str:
        """Name the boot's setting in words."""
        return f"{self.device} {self.fs} {self.setting.label}"

    @property
    def folder(self) -> str:
        """Name the folder of the boot's raw data."""
        limits = "-".join(str(limit.mib) for limit in self.limits)
        return f"{self.device}-{self.fs}-{self.setting.folder}-{limits}-round{self.round}"

    @property
    def estimate_s(self) -> float:
        """Guess the seconds that the boot takes, for the time remaining."""
        windows: list[Window] = [*self.limits, *([self.direct] if self.direct else [])]
        runs_s = sum(self._run_s(one) + RUN_ESTIMATE_S for one in windows)
        return BOOT_ESTIMATE_S + runs_s + sum(limit.mib for limit in self.limits) / SYNC_ESTIMATE_MIB_S

    def _run_s(self, window: Window) -> float:
        if window.between_mib:
            return window.between_mib[1] / AMOUNT_ESTIMATE_MIB_S
        return window.ramp_s + (window.window_s or self.open_end_s)


def boots(chosen: Scenario) -> list[Boot]:
    """List the boots in the order in which they run.

    Within a round, stock, each number of contexts and two BDIs follow each other on one filesystem, so that a
    drift of the machine meets all of them; the first one changes from round to round.
    """
    settings = _settings(chosen)
    limits = tuple(chosen.limits)
    shared = [limits] if chosen.reusable_files else [(limit,) for limit in limits]
    return [
        Boot(
            device=device,
            fs=fs,
            setting=setting,
            limits=part,
            direct=chosen.direct
            if setting.variant == "stock" and "direct" in chosen.bounds and part is shared[0]
            else None,
            round=number + 1,
            open_end_s=_open_end_s(chosen),
        )
        for device in chosen.devices
        for number in range(chosen.repetitions)
        for fs in chosen.filesystems
        for part in shared
        for setting in _rotated(settings, number)
    ]


def _open_end_s(chosen: Scenario) -> float:
    """Guess the seconds of a run that has no window, for the time remaining."""
    if chosen.files is None:
        return OPEN_END_ESTIMATE_S
    return len(chosen.files.names) * chosen.files.size_mib / FIXED_ESTIMATE_MIB_S


def _settings(chosen: Scenario) -> list[Setting]:
    """List the settings in the order of a round; those that differ by layout only are neighbours."""
    found = [Setting(variant="stock", contexts=1)]
    crews: list[int | None] = [*chosen.workers]
    modes: list[AgMode | None] = [*chosen.ag_modes]
    placements: list[Placement | None] = [*chosen.placements]
    for contexts in chosen.contexts:
        # With one context there is nothing to choose.
        tried: list[Affinity | None] = [*chosen.affinities] if contexts > 1 else []
        found += [
            Setting(
                variant="parallel",
                contexts=contexts,
                affinity=affinity,
                workers=workers,
                ag_mode=mode,
                placement=placement,
            )
            for affinity in tried or [None]
            for workers in crews or [None]
            for mode in modes or [None]
            for placement in placements or [None]
        ]
    if "two_bdi" in chosen.bounds:
        found.append(Setting(variant="two_bdi", contexts=None))
    return [setting.model_copy(update={"layout": layout}) for setting in found for layout in chosen.layouts]


def _rotated(settings: list[Setting], number: int) -> list[Setting]:
    first = number % len(settings)
    return settings[first:] + settings[:first]
