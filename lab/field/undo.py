# SPDX-License-Identifier: GPL-2.0
"""What a run makes and changes on a server, written down before it does, and put back whatever ends it."""

from __future__ import annotations

import json
import os
import shutil

from lab.field.place import Place, System
from lab.util.errors import LabError

#: Made in the directory that is given, for the time of a run.
FOLDER = "pwb-field"
NOTE = "unfinished.json"
CONTEXTS = "nwritebacks"
# Of each pair the kernel keeps the one that was written last, and shows 0 for the other.
_LIMITS = (("dirty_bytes", "dirty_ratio"), ("dirty_background_bytes", "dirty_background_ratio"))


class Work:
    """The folder of a run, with a note in it of the settings to put back."""

    def __init__(self, place: Place, system: System) -> None:
        """Name it; nothing is made yet."""
        self.folder = place.folder / FOLDER
        self._bdi, self._system = place.bdi, system

    def begin(self, *, limits: bool) -> None:
        """Make the folder, and note what is set now.

        Args:
            limits: whether the run is to change ``vm.dirty_*``.

        Raises:
            LabError: there is something of this name already.
        """
        try:
            self.folder.mkdir(mode=0o700)
        except FileExistsError:
            raise LabError(
                f"{self.folder} is there already, and not from a run of yours that was killed: move it away"
            ) from None
        note = {"boot": self._boot(), "settings": self.settings(limits=limits)}
        with (self.folder / NOTE).open("w", encoding="utf-8") as file:
            json.dump(note, file)
            file.flush()
            os.fsync(file.fileno())

    def settings(self, *, limits: bool) -> dict[str, str]:
        """Return what is set now, by the names of the kernel's files: what to write to have it again."""
        found = {}
        if (self._bdi / CONTEXTS).exists():
            # "auto (3)" is what the kernel has found; "auto" is what was set.
            found[CONTEXTS] = (self._bdi / CONTEXTS).read_text().split()[0]
        for amount, ratio in _LIMITS if limits else ():
            values = {name: (self._system.vm / name).read_text().strip() for name in (amount, ratio)}
            name = ratio if values[amount] == "0" else amount
            found[name] = values[name]
        return found

    def end(self) -> list[str]:
        """Put back what was set, and remove the folder with all that is in it.

        Returns:
            A line for each setting.

        Raises:
            LabError: a setting could not be put back; the folder stays, and so does the note.
        """
        if not self.folder.exists():
            return []
        said, failed = [], []
        for name, value in self._noted().items():
            path = self._bdi / name if name == CONTEXTS else self._system.vm / name
            try:
                path.write_text(value)
            except OSError as error:
                failed.append(f"echo {value} > {path} ({error.strerror})")
            else:
                said.append(f"{path} is {value} again")
        if failed:
            raise LabError(f"not all settings could be put back, do it by hand: {'; '.join(failed)}")
        # The note goes last: what is left until then is still known to be ours.
        for path in self.folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.name != NOTE:
                path.unlink()
        (self.folder / NOTE).unlink()
        self.folder.rmdir()
        return said

    def is_left(self) -> bool:
        """Say whether a run of this user was killed and has left its folder behind.

        Raises:
            LabError: there is something else of this name.
        """
        if not self.folder.exists() and not self.folder.is_symlink():
            return False
        ours = self.folder.lstat().st_uid == os.geteuid() and not self.folder.is_symlink()
        if not ours or not (self.folder / NOTE).is_file():
            raise LabError(f"{self.folder} is there already, and not from a run of yours: move it away")
        return True

    def _noted(self) -> dict[str, str]:
        """Return the settings of the note that are still to be put back; after a reboot there are none."""
        try:
            note = json.loads((self.folder / NOTE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            # Killed before it was whole, so before anything was changed.
            return {}
        if note["boot"] != self._boot():
            return {}
        # Nothing but these is ever written, whatever a note says.
        known = {CONTEXTS, *(name for pair in _LIMITS for name in pair)}
        return {name: value for name, value in note["settings"].items() if name in known}

    def _boot(self) -> str:
        return (self._system.proc / "sys" / "kernel" / "random" / "boot_id").read_text().strip()
