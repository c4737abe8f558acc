# SPDX-License-Identifier: GPL-2.0
"""Where the flushers spend their time: measured for several numbers of contexts, as a table and a picture."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, cast, get_args

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from pydantic import BaseModel

from lab.experiment.published import Affinity
from lab.machine import guest
from lab.tree.build import Kernel
from lab.util.errors import LabError, unknown_name
from lab.util.paths import REPO

Place = Literal["apart", "together", "full"]

DEVICE = "emulated-nvme"
GUEST_MEM_MIB = 6144
DEVICE_MIB = 3072
TIMEOUT_S = 240
# As in the scenario t2.
MKFS = {"xfs": ["-d", "agcount=4"]}
DPI = 120

# What a flusher waits for, by a function in its stack; the first label that has one counts. Functions of
# Linux 7.3.
REASONS = (
    ("submission", ("labblk_queue_rq",)),
    ("tag", ("blk_mq_get_tag",)),
    ("metadata read", ("xfs_buf_iowait", "__wait_on_buffer", "bh_read", "f2fs_get_node_folio")),
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
    """What guest/waits.py wrote.

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


class Column(BaseModel):
    """One setting: how many flushers, on average, were in which state.

    Attributes:
        contexts: number of writeback contexts.
        affinity: value of ``wb_affinity``.
        place: where the files are.
        mib_s: what reached the device, in MiB/s.
        in_one_ag: as in :class:`Recorded`.
        flushers: state -> number of flushers on average; all states together are ``contexts``.
        others: for what no reason is known for, the innermost telling function -> flushers on average.
    """

    contexts: int
    affinity: Affinity
    place: Place
    mib_s: float
    in_one_ag: float
    flushers: dict[str, float]
    others: dict[str, float]


def reason(stack: Sequence[str]) -> str:
    """Name what a sleeping flusher waits for.

    Args:
        stack: its functions, innermost first.
    """
    for label, functions in REASONS:
        if any(function in stack for function in functions):
            return label
    return OTHER


def column(recorded: Recorded, contexts: int, affinity: Affinity, place: Place) -> Column:
    """Turn seconds into average numbers of flushers.

    Raises:
        LabError: the trace has gaps.
    """
    if recorded.lost:
        raise LabError(
            f"the trace with {contexts} contexts has {recorded.lost} gaps: give the guest more memory"
        )
    seconds = {RUNNING: recorded.running_s, QUEUED: recorded.queued_s}
    others: dict[str, float] = {}
    for stack, waited_s, _ in recorded.waits:
        why = reason(stack)
        seconds[why] = seconds.get(why, 0.0) + waited_s
        if why == OTHER:
            function = next((name for name in stack if name not in SLEEPS), "unknown")
            others[function] = others.get(function, 0.0) + waited_s / recorded.seconds
    flushers = {state: one / recorded.seconds for state, one in seconds.items()}
    flushers[IDLE] = max(contexts - sum(flushers.values()), 0.0)
    return Column(
        contexts=contexts,
        affinity=affinity,
        place=place,
        mib_s=round(recorded.mib_s, 1),
        in_one_ag=round(recorded.in_one_ag, 2),
        flushers={state: round(number, 3) for state, number in flushers.items()},
        others={function: round(number, 3) for function, number in others.items()},
    )


def record(kernel: Kernel, fs: str, contexts: int, affinity: Affinity, place: Place) -> Column:
    """Boot the traced kernel and watch the flushers of guest/waits.py.

    Args:
        kernel: of the flavour ``traced``.
        fs: filesystem under test.
        contexts: number of writeback contexts.
        affinity: value of ``wb_affinity``.
        place: each file in a directory of its own, or all in one.

    Raises:
        LabError: the writers failed, or the guest did, or the trace has gaps.
    """
    with tempfile.TemporaryDirectory() as folder:
        result = guest.run(
            kernel.path,
            ["env", f"PYTHONPATH={REPO}", sys.executable, "-m", "guest.waits", place],
            fs=fs,
            device=DEVICE,
            settings={"nwritebacks": str(contexts), "wb_affinity": affinity},
            timeout_s=TIMEOUT_S,
            mem_mib=GUEST_MEM_MIB,
            device_size_mib=DEVICE_MIB,
            results=Path(folder),
            mkfs=MKFS.get(fs, []),
        )
        if result.status:
            raise LabError(f"the writers failed with {contexts} contexts: {result.output.strip()}")
        recorded = Recorded.model_validate_json(Path(folder, "waits.json").read_text())
    return column(recorded, contexts, affinity, place)


def settings(
    fs: str, contexts: list[int], affinities: list[str], places: list[str]
) -> list[tuple[int, Affinity, Place]]:
    """List what to measure; with one context there is no choice of affinity.

    Args:
        fs: filesystem under test.
        contexts: numbers of contexts.
        affinities: values of ``wb_affinity``.
        places: values of :data:`Place`.

    Raises:
        LabError: an affinity or a place that there is not, or not on this filesystem.
    """
    if "full" in places and fs != "xfs":
        raise LabError(
            f"place 'full' with {fs}: the lock that it holds is an AG's, so only xfs has it; leave it out"
        )
    for place in places:
        if place not in get_args(Place):
            raise unknown_name("place", place, get_args(Place))
    for affinity in affinities:
        if affinity not in get_args(Affinity):
            raise unknown_name("affinity", affinity, get_args(Affinity))
    return [
        (number, cast(Affinity, affinity), cast(Place, place))
        for place in places
        for affinity in affinities
        for number in contexts
        if number > 1 or affinity == affinities[0]
    ]


def report(columns: Sequence[Column], fs: str, folder: Path) -> None:
    """Write table.md, summary.json and waits.png into a folder, made where it is missing.

    Args:
        columns: the settings.
        fs: filesystem under test.
        folder: where to write.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "table.md").write_text(table(columns) + "\n", encoding="utf-8")
    found = [one.model_dump() for one in columns]
    (folder / "summary.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    draw(columns, f"What the flushers do: {fs}, 4 writers, each block allocated", folder / "waits.png")


def states(columns: Sequence[Column]) -> list[str]:
    """Return the states that occur: work first, then the reasons in their order, what says little last."""
    order = [RUNNING, QUEUED, *(label for label, _ in REASONS), OTHER, IDLE]
    return [state for state in order if any(one.flushers.get(state, 0) >= 0.005 for one in columns)]


def table(columns: Sequence[Column]) -> str:
    """Return a Markdown table with one line for each setting."""
    names = states(columns)
    lines = [
        f"| files | affinity | contexts | MiB/s | in one AG | {' | '.join(names)} |",
        "|---|---|---:|---:|---:|" + "---:|" * len(names),
    ]
    for one in columns:
        shown = " | ".join(f"{one.flushers.get(name, 0):.2f}" for name in names)
        setting = f"| {one.place} | {one.affinity} | {one.contexts} |"
        lines.append(f"{setting} {one.mib_s:.0f} | {one.in_one_ag:.2f} | {shown} |")
    return "\n".join(lines)


def draw(columns: Sequence[Column], title: str, path: Path) -> None:
    """Draw one stacked bar for each setting: how many flushers are in which state, on average.

    Args:
        columns: the settings.
        title: of the figure.
        path: PNG to write.
    """
    figure, axes = plt.subplots(figsize=(max(6.0, 1.0 * len(columns) + 3), 5), layout="constrained")
    labels = [f"{one.contexts}\n{one.affinity}\n{one.place}\n{one.mib_s:.0f} MiB/s" for one in columns]
    bottom = [0.0] * len(columns)
    colors = plt.get_cmap("tab20")
    for number, state in enumerate(states(columns)):
        heights = [one.flushers.get(state, 0.0) for one in columns]
        color = "#eeeeee" if state == IDLE else colors(number)
        axes.bar(range(len(columns)), heights, bottom=bottom, label=state, color=color)
        bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
    axes.set_xticks(range(len(columns)), labels)
    axes.set_ylabel("flushers, average")
    axes.set_title(title)
    axes.legend(loc="upper left", fontsize="small")
    figure.savefig(path, dpi=DPI)
    plt.close(figure)
