# SPDX-License-Identifier: GPL-2.0
"""What a run makes and changes on a server, written down before it does, and put back whatever ends it."""

from __future__ import annotations

import json
import os
import shutil
import stat

from lab.field.place import Place, System
from lab.util.errors import LabError

#: Made in the directory that is given, for the time of a run.
FOLDER = "pwb-field-run"
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
        # Device and inode of the folder, where it is ours; and what to put back.
        self._ours: tuple[int, int] | None = None
        self._saved: dict[str, str] = {}

    def begin(self, *, limits: bool) -> None:
        """Make the folder, and note what is set now; where that fails, :meth:`end` undoes it.

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
        self._ours = _identity(self.folder.lstat())
        saved = self.settings(limits=limits)
        with (self.folder / NOTE).open("w", encoding="utf-8") as file:
            json.dump({"boot": self._boot(), "settings": saved}, file)
            file.flush()
            os.fsync(file.fileno())
        self._saved = saved

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

        It is for after :meth:`begin`, or :meth:`is_left`; without a folder of ours it does nothing.

        Returns:
            A line for each setting.

        Raises:
            LabError: a setting could not be put back, then the folder stays, and so does the note; or the
                folder could not be removed.
        """
        if self._ours is None:
            return []
        # The filesystem may be the one that has failed under the load: it comes last.
        said = self._put_back()
        try:
            self._remove()
        except OSError as error:
            raise LabError(
                f"{self.folder} cannot be removed ({error.strerror}): expected it to be as the run left it; "
                "all settings are put back, remove it by hand"
            ) from None
        self._ours = None
        return said

    def is_left(self) -> bool:
        """Say whether a run of this user was killed and has left its folder behind.

        Raises:
            LabError: there is something else of this name, or the note in it cannot be read.
        """
        try:
            found = self.folder.lstat()
        except FileNotFoundError:
            return False
        ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
        # Made before its note, and removed after it, it is empty for a moment.
        if not ours or not ((self.folder / NOTE).is_file() or not os.listdir(self.folder)):
            raise LabError(f"{self.folder} is there already, and not from a run of yours: move it away")
        self._ours, self._saved = _identity(found), self._noted()
        return True

    def _put_back(self) -> list[str]:
        said, failed = [], []
        for name, value in self._saved.items():
            path = self._bdi / name if name == CONTEXTS else self._system.vm / name
            if name == CONTEXTS and not self._bdi.is_dir():
                said.append(f"{path} went with its device")
                continue
            try:
                if value == "0":
                    # The kernel shows 0 for a ratio while bytes count: 0 alone would change nothing.
                    path.write_text("1")
                path.write_text(value)
                is_back = self.settings(limits=name != CONTEXTS).get(name) == value
            except OSError as error:
                failed.append(f"echo {value} > {path} ({error.strerror})")
                continue
            if is_back:
                said.append(f"{path} is {value} again")
            else:
                failed.append(f"echo {value} > {path} (the kernel shows another value)")
        if failed:
            raise LabError(f"not all settings could be put back, do it by hand: {'; '.join(failed)}")
        return said

    def _remove(self) -> None:
        found = self.folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or _identity(found) != self._ours:
            raise LabError(
                f"{self.folder} is not the directory that the run has made: expected nobody else to move it; "
                "all settings are put back, look for the run's files and remove them by hand"
            )
        # The note goes last: what is left until then is still known to be ours.
        for path in self.folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.name != NOTE:
                path.unlink()
        (self.folder / NOTE).unlink(missing_ok=True)
        self.folder.rmdir()

    def _noted(self) -> dict[str, str]:
        """Return the settings of the note that are still to be put back; after a reboot there are none."""
        path = self.folder / NOTE
        try:
            note = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            # Killed before it was whole, so before anything was changed.
            return {}
        except OSError as error:
            limits = (str(self._system.vm / name) for pair in _LIMITS for name in pair)
            raise LabError(
                f"{path} cannot be read ({error.strerror}): expected what a run that was killed has changed; "
                f"set {', '.join((str(self._bdi / CONTEXTS), *limits))} by hand, or reboot, and remove "
                f"{self.folder}"
            ) from None
        if note["boot"] != self._boot():
            return {}
        # Nothing but these is ever written, whatever a note says.
        known = {CONTEXTS, *(name for pair in _LIMITS for name in pair)}
        return {name: value for name, value in note["settings"].items() if name in known}

    def _boot(self) -> str:
        return (self._system.proc / "sys" / "kernel" / "random" / "boot_id").read_text().strip()


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
