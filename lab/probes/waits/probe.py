# SPDX-License-Identifier: GPL-2.0
"""Where the flushers spend their time, for several numbers of contexts: as a table and a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, get_args

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pandas as pd
from pydantic import BaseModel

from lab.experiment.axes import Affinity
from lab.experiment.figure import Figure
from lab.probes.probe import Boot, Probe, Row
from lab.util import markdown, picture
from lab.util.errors import LabError, unknown_name

Place = Literal["apart", "together", "full"]

DEVICE = "emulated-nvme"
GUEST_MEM_MIB = 6144
DEVICE_MIB = 3072
TIMEOUT_S = 240
# As in the scenario t2.
MKFS = {"xfs": ["-d", "agcount=4"]}

# What a flusher waits for, by a function in its stack; the first label that has one counts. Functions of
# Linux 7.3.
REASONS = (
    ("submission", ("labblk_queue_rq",)),
    ("tag", ("blk_mq_get_tag",)),
    ("metadata read", ("xfs_buf_iowait", "__wait_on_buffer", "f2fs_get_node_folio")),
    ("log", ("xlog_grant_head_wait", "xlog_grant_head_check", "xlog_state_get_iclog_space", "xfs_log_force")),
    ("journal", ("jbd2__journal_start", "jbd2_journal_get_write_access")),
    ("AGF", ("xfs_read_agf",)),
    ("allocation btree", ("xfs_alloc_vextent_finish", "xfs_alloc_vextent_iterate_ags", "xfs_bmap_btalloc")),
    ("inode lock", ("xfs_ilock", "ext4_map_blocks", "f2fs_map_blocks")),
    ("current segment", ("f2fs_allocate_data_block",)),
    ("F2FS checkpoint", ("f2fs_balance_fs", "f2fs_write_checkpoint", "f2fs_lock_op")),
    ("inode of a sibling", ("inode_sleep_on_writeback",)),
    ("page", ("folio_wait_bit_common",)),
)
OTHER = "other"
RUNNING, QUEUED, IDLE = "on a CPU", "ready, no CPU", "no work"
# Functions that say that somebody sleeps, not why.
SLEEPS = ("__schedule", "schedule", "schedule_preempt_disabled", "schedule_timeout", "io_schedule")


class Recorded(BaseModel):
    """What the script leaves.

    Attributes:
        seconds: length of the window.
        mib_s: what reached the device in it, in MiB/s.
        running_s: seconds that flushers were on a CPU, all together.
        queued_s: seconds that they were ready to run and had none.
        waits: for each stack, innermost function first: seconds asleep, and how often.
        lost: 0 where the trace is whole.
        in_one_ag: share of a file's blocks that lie in one AG of XFS, or quarter of the device, average.
    """

    seconds: float
    mib_s: float
    running_s: float
    queued_s: float
    waits: list[tuple[list[str], float, int]]
    lost: int
    in_one_ag: float


@dataclass(frozen=True)
class Waits(Probe[Recorded]):
    """Four writers whose every block has to be allocated, on a device that waits.

    Attributes:
        fs: filesystem under test.
        contexts: numbers of writeback contexts.
        affinities: values of ``wb_affinity``, tried where there is more than one context.
        places: values of :data:`Place`, where the files are.
    """

    fs: str
    contexts: tuple[int, ...]
    affinities: tuple[str, ...]
    places: tuple[str, ...]

    name = "waits"
    machine = "uml"
    record = Recorded
    axes: ClassVar = {"place": "files", "affinity": "affinity", "contexts": "contexts"}
    figures: ClassVar = {
        "mib_s": Figure("at the device", "MiB/s", heading="MiB/s", form=".0f", better="more"),
        "in_one_ag": Figure("share of a file in one AG", heading="in one AG", better="more"),
    }

    def __post_init__(self) -> None:
        """Refuse an affinity or a place that there is not, or not on this filesystem.

        Raises:
            LabError: names it.
        """
        if "full" in self.places and self.fs != "xfs":
            raise LabError(
                f"place 'full' with {self.fs}: the lock that it holds is an AG's, so only xfs has it; "
                "leave it out"
            )
        for place in self.places:
            if place not in get_args(Place):
                raise unknown_name("place", place, get_args(Place))
        for affinity in self.affinities:
            if affinity not in get_args(Affinity):
                raise unknown_name("affinity", affinity, get_args(Affinity))

    def boots(self) -> list[Boot]:
        """Boot the traced kernel with each setting; with one context there is no choice of affinity."""
        return [
            self._boot(place, affinity, contexts)
            for place in self.places
            for affinity in self.affinities
            for contexts in self.contexts
            if contexts > 1 or affinity == self.affinities[0]
        ]

    def _boot(self, place: str, affinity: str, contexts: int) -> Boot:
        return Boot(
            name=f"{place}-{affinity}-{contexts}",
            script="lab.probes.waits.in_guest",
            arguments=(place,),
            kernel="traced",
            axes={"place": place, "affinity": affinity, "contexts": contexts},
            options={
                "fs": self.fs,
                "device": DEVICE,
                "settings": {"nwritebacks": str(contexts), "wb_affinity": affinity},
                "timeout_s": TIMEOUT_S,
                "mem_mib": GUEST_MEM_MIB,
                "device_size_mib": DEVICE_MIB,
                "mkfs": MKFS.get(self.fs, []),
            },
        )

    def rows(self, boot: Boot, record: Recorded) -> list[Row]:
        """Turn seconds into average numbers of flushers; all states together are the contexts.

        Raises:
            LabError: the trace has gaps.
        """
        if record.lost:
            raise LabError(f"the trace of {boot.name} has {record.lost} gaps: give the guest more memory")
        seconds = {RUNNING: record.running_s, QUEUED: record.queued_s}
        for stack, waited_s, _ in record.waits:
            why = reason(stack)
            seconds[why] = seconds.get(why, 0.0) + waited_s
        flushers = {state: one / record.seconds for state, one in seconds.items()}
        idle = max(int(boot.axes["contexts"] or 0) - sum(flushers.values()), 0.0)
        row: Row = {"mib_s": round(record.mib_s, 1), "in_one_ag": round(record.in_one_ag, 2)}
        return [row | {state: round(number, 3) for state, number in (flushers | {IDLE: idle}).items()}]

    def draw(self, runs: pd.DataFrame, records: Mapping[str, Recorded], folder: Path) -> None:
        """Draw one stacked bar for each setting."""
        title = f"What the flushers do: {self.fs}, 4 writers, each block allocated"
        draw(runs, title, folder / "waits.png")

    @classmethod
    def table(cls, runs: pd.DataFrame) -> str:
        """Return the table, with a column for each state that occurs."""
        names = states(runs)
        rows = [
            [
                *(str(run[axis]) for axis in cls.axes),
                *(one.text(run[name]) for name, one in cls.figures.items()),
                *(f"{run[state]:.2f}" for state in names),
            ]
            for run in runs.fillna({state: 0.0 for state in names}).to_dict("records")
        ]
        columns = [*cls.axes.values(), *(one.column for one in cls.figures.values()), *names]
        return markdown.table(columns, rows, left=2)


def reason(stack: Sequence[str]) -> str:
    """Name what a sleeping flusher waits for.

    Args:
        stack: its functions, innermost first.
    """
    for label, functions in REASONS:
        if any(function in stack for function in functions):
            return label
    return OTHER


def states(runs: pd.DataFrame) -> list[str]:
    """Return the states that occur: work first, then the reasons in their order, what says little last."""
    order = [RUNNING, QUEUED, *(label for label, _ in REASONS), OTHER, IDLE]
    return [state for state in order if state in runs and runs[state].max() >= 0.005]


def draw(runs: pd.DataFrame, title: str, path: Path) -> None:
    """Draw one stacked bar for each setting: how many flushers are in which state, on average.

    Args:
        runs: the settings.
        title: of the figure.
        path: PNG to write.
    """
    figure, axes = plt.subplots(figsize=(max(6.0, 1.0 * len(runs) + 3), 5), layout="constrained")
    labels = [
        f"{run['contexts']}\n{run['affinity']}\n{run['place']}\n{run['mib_s']:.0f} MiB/s"
        for run in runs.to_dict("records")
    ]
    bottom = [0.0] * len(runs)
    colors = plt.get_cmap("tab20")
    for number, state in enumerate(states(runs)):
        heights = runs[state].fillna(0.0).tolist()
        color = "#eeeeee" if state == IDLE else colors(number)
        axes.bar(range(len(runs)), heights, bottom=bottom, label=state, color=color)
        bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
    axes.set_xticks(range(len(runs)), labels)
    axes.set_ylabel("flushers, average")
    axes.set_title(title)
    axes.legend(loc="upper left", fontsize="small")
    picture.save(path, figure)
