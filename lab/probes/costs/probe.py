# SPDX-License-Identifier: GPL-2.0
"""What our change costs where it has nothing to bring: memory, and CPU time of pages and syncs."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from pydantic import RootModel

from lab.experiment.figure import MISSING
from lab.probes.probe import Boot, Probe, Row
from lab.util import markdown

MEM_MIB = 4096
DEVICE_MIB = 1024
#: Seconds of the host, a guard only.
TIMEOUT_S = 1800
OTHER_FILES = 64
#: CPUs that a kernel prepares for, at least, to have a context for each of them: it has four a CPU at most.
POSSIBLE_FOR_OTHERS = OTHER_FILES // 4
#: The second boot of stock, the null of all comparisons.
AGAIN = "stock again"


@dataclass(frozen=True)
class Script:
    """A script that runs in the guest.

    Attributes:
        name: its module in this folder.
        unit: of all its figures.
        arguments: its arguments; ``{contexts}`` stands for the number of contexts.
        fs: filesystem under test, ``none`` where the script makes its own devices.
        most: contexts that it is run with besides one and one for each CPU; None: no others.
    """

    name: str
    unit: str
    arguments: tuple[str, ...] = ()
    fs: str = "xfs"
    most: int | None = None


SCRIPTS = {
    "device": Script("device", "bytes", fs="none"),
    "cgroup": Script("cgroup", "bytes"),
    "sync": Script("sync", "us", ("{contexts}",), fs="none"),
    "page": Script("page", "us", ("0",)),
    "page-beside-others": Script("page", "us", (str(OTHER_FILES),), most=OTHER_FILES),
}


class Recorded(RootModel[dict[str, float]]):
    """What a script leaves: figures by what they are of."""


@dataclass(frozen=True)
class Costs(Probe[Recorded]):
    """Every script on stock, and on the parallel kernel with one context and with one for each CPU.

    Stock has two boots: what they differ by tells nothing of the others. Dirtying pages is asked with many
    contexts, too.

    Attributes:
        cpus: the guests' CPUs.
        possible_cpus: CPUs that the kernels prepare for; None: as many.
    """

    cpus: int
    possible_cpus: int | None = None

    name = "costs"
    machine = "smp"
    record = Recorded

    def boots(self) -> list[Boot]:
        """Boot a guest for each script, kernel and number of contexts."""
        return [
            self._boot(name, script, setting, contexts)
            for name, script in SCRIPTS.items()
            for setting, contexts in (
                ("stock", 1),
                (AGAIN, 1),
                *(("parallel", number) for number in sorted({1, self.cpus, script.most or 1})),
            )
        ]

    def _boot(self, name: str, script: Script, setting: str, contexts: int) -> Boot:
        settings = {}
        # Stock's guests of a script are those of ours, for each CPU costs memory and counters.
        possible = max(self.possible_cpus or self.cpus, POSSIBLE_FOR_OTHERS if script.most else 0)
        kernel = "stock" if setting == AGAIN else setting
        if kernel == "parallel" and script.fs != "none":
            settings = {"nwritebacks": str(contexts), "wb_affinity": "rotor"}
        return Boot(
            name=f"{name}-{setting.replace(' ', '-')}-{contexts}",
            script=f"lab.probes.costs.{script.name}",
            arguments=tuple(word.replace("{contexts}", str(contexts)) for word in script.arguments),
            kernel=kernel,
            axes={"kernel": setting, "contexts": contexts, "unit": script.unit},
            options={
                "cpus": self.cpus,
                "possible_cpus": possible,
                "fs": script.fs,
                "device": "brd",
                "device_size_mib": DEVICE_MIB,
                "mem_mib": MEM_MIB,
                "settings": settings,
                "timeout_s": TIMEOUT_S,
            },
        )

    def rows(self, boot: Boot, record: Recorded) -> list[Row]:
        """Return a row for each figure."""
        return [{"what": what, "cost": cost} for what, cost in record.root.items()]

    @classmethod
    def table(cls, runs: pd.DataFrame) -> str:
        """Return a line for each figure, with that of contexts as a multiple of stock's."""
        ours = runs[runs["kernel"] == "parallel"]
        numbers = sorted(ours["contexts"].unique())
        compared = [(AGAIN, 1)] if AGAIN in set(runs["kernel"]) else []
        compared += [("parallel", number) for number in numbers]
        heads = [
            AGAIN if kernel == AGAIN else f"{number} context{'s' if number != 1 else ''}"
            for kernel, number in compared
        ]
        cost = runs.set_index(["what", "kernel", "contexts"])["cost"]
        rows = []
        for what, unit in runs[["what", "unit"]].drop_duplicates().itertuples(index=False):
            form = ",.0f" if unit == "bytes" else ",.2f"
            stock = cost[what, "stock", 1]
            found = [cost.get((what, kernel, number)) for kernel, number in compared]
            told = [MISSING if one is None else f"{one:{form}} ({one / stock:.2f} x)" for one in found]
            rows.append([what, "µs" if unit == "us" else unit, f"{stock:{form}}", *told])
        return markdown.table(["cost of", "unit", "stock", *heads], rows, left=2)
