# SPDX-License-Identifier: GPL-2.0
"""A setting of the kernel: what is compared within a round, its name, and how a guest is put into it."""

from __future__ import annotations

from pydantic import BaseModel

from lab.experiment.published import Affinity, AgMode, Layout, Placement, Variant

#: What the kernel is told where it is to find the number of contexts.
AUTO = "auto"
VARIANT_NAMES = {"stock": "stock", "bdis": "separate BDIs", "direct": "direct I/O"}
# There is a place for it in sysfs only once the filesystem is mounted.
AG_MODE_SCRIPT = """
for kind in overwrite delalloc; do echo {mode} > /sys/fs/xfs/$(basename $PWB_DEV)/writeback/$kind; done
"""


class Setting(BaseModel, frozen=True):
    """The kernel, what was chosen in sysfs, and how the files lie.

    ``contexts`` is None for the bounds, and where the parallel kernel finds the number (``auto``); it is 1
    for stock, which has one flusher. ``affinity``, ``workers``, ``ag_mode`` and ``placement`` are None where
    the kernel's own default is left alone.
    """

    variant: Variant
    contexts: int | None
    affinity: Affinity | None = None
    workers: int | None = None
    ag_mode: AgMode | None = None
    placement: Placement | None = None
    layout: Layout = "as-made"

    @property
    def label(self) -> str:
        """Name the setting in words; what is as usual is left out."""
        kernel = VARIANT_NAMES.get(self.variant) or self._contexts_said
        crew = f"{self.workers} worker{'s' if self.workers != 1 else ''}" if self.workers else None
        mode = f"mode {self.ag_mode}" if self.ag_mode else None
        place = f"{self.placement} placement" if self.placement else None
        layout = self.layout if self.layout != "as-made" else None
        return ", ".join(part for part in (kernel, self.affinity, crew, mode, place, layout) if part)

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
        workers = f"workers{self.workers}" if self.workers else None
        mode = f"mode-{self.ag_mode}" if self.ag_mode else None
        layout = self.layout if self.layout != "as-made" else None
        parts = kernel, self.affinity, workers, mode, self.placement, layout
        return "-".join(part for part in parts if part)

    @property
    def bdi_files(self) -> dict[str, str]:
        """Return what to write into the folder of the device's backing_dev_info."""
        files = {"nwritebacks": str(self.contexts or AUTO)} if self.variant == "parallel" else {}
        files |= {"wb_affinity": self.affinity} if self.affinity else {}
        return files | ({"wb_workers": str(self.workers)} if self.workers else {})

    @property
    def before_mount(self) -> Setting:
        """Return what has to be there before the mount; what is left out may change at any time."""
        return self.model_copy(update={"contexts": None, "affinity": None, "workers": None})

    @property
    def mounted(self) -> str:
        """Return the shell script that sets what can be set on a mounted filesystem only."""
        return AG_MODE_SCRIPT.format(mode=self.ag_mode) if self.ag_mode else ""
