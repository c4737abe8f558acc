# SPDX-License-Identifier: GPL-2.0
"""A setting of the kernel: what is compared within a round, its name, and how a guest is put into it."""

from __future__ import annotations

from lab.experiment.axes import AXES, Choice, Flavour, Variant

#: What the kernel is told where it is to find the number of contexts.
AUTO = "auto"
VARIANT_NAMES = {"stock": "stock", "prepared": "prepared", "bdis": "separate BDIs", "direct": "direct I/O"}


class Setting(Choice, frozen=True):
    """The kernel, the number of contexts, and what else was chosen.

    ``contexts`` is None for the bounds, and where the parallel kernel finds the number (``auto``); it is 1
    for stock and for what only prepares, which have one flusher.
    """

    variant: Variant
    contexts: int | None

    @property
    def label(self) -> str:
        """Name the setting in words; what is as usual is left out."""
        return ", ".join([VARIANT_NAMES.get(self.variant) or self._contexts_said, *self.said()])

    @property
    def flavour(self) -> Flavour:
        """Return that of the kernel that runs; the bounds run stock."""
        return self.variant if self.variant in ("prepared", "parallel") else "stock"

    @property
    def finds_contexts(self) -> bool:
        """Say whether the kernel is to find the number of contexts."""
        return self.variant == "parallel" and self.contexts is None

    @property
    def _contexts_said(self) -> str:
        if self.contexts is None:
            return f"{AUTO} contexts"
        return f"{self.contexts} context{'s' if self.contexts != 1 else ''}"

    @property
    def folder(self) -> str:
        """Name the setting in a file name."""
        kernel = f"parallel{self.contexts or '-auto'}" if self.variant == "parallel" else self.variant
        return "-".join([kernel, *self.named()])

    @property
    def bdi_files(self) -> dict[str, str]:
        """Return what to write into the folder of the device's backing_dev_info."""
        files = {"nwritebacks": str(self.contexts or AUTO)} if self.variant == "parallel" else {}
        chosen = {axis.bdi_file: self.choice[name] for name, axis in AXES.items() if axis.bdi_file}
        return files | {file: str(value) for file, value in chosen.items() if value is not None}

    @property
    def before_mount(self) -> Setting:
        """Return what has to be there before the mount; what is left out may change at any time."""
        at_any_time = {name: None for name, axis in AXES.items() if axis.bdi_file}
        return self.model_copy(update={"contexts": None, **at_any_time})

    @property
    def mounted(self) -> str:
        """Return the shell script that sets what can be set on a mounted filesystem only."""
        if not self.ag_mode:
            return ""
        # There is a place for it in sysfs only once the filesystem is mounted.
        return AXES["ag_mode"].typed[self.ag_mode].replace("DEVICE", "$(basename $PWB_DEV)") + "\n"

    @property
    def typed(self) -> str:
        """Return the line to type for it; names and numbers in capitals are to fill in."""
        files = [
            f"echo {value} > /sys/class/bdi/MAJOR:MINOR/{file}" for file, value in self.bdi_files.items()
        ]
        others = [
            axis.typed[value]
            for name, axis in AXES.items()
            if (value := self.choice[name]) in axis.typed and value not in axis.usual
        ]
        return "; ".join([*files, *others])
