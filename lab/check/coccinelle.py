# SPDX-License-Identifier: GPL-2.0
"""The kernel's own semantic patches, ``scripts/coccinelle``, report nothing new of what a patch changes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lab.check import messages
from lab.check.messages import Messages
from lab.check.patches import CheckTree, Patch
from lab.tree.source import Source
from lab.tree.weave import git
from lab.util.errors import LabError
from lab.util.process import output

_REPORT = re.compile(r"^virtual\s+(\w+\s*,\s*)*report\b", re.MULTILINE)
_OPTIONS = re.compile(r"^//+ ?(?:# )?Options:(.*)$", re.MULTILINE)
_REQUIRES = re.compile(r"^//+ ?Requires:\s*(\S+)", re.MULTILINE)
_SAID = re.compile(r"^(?P<path>[^\s:]+):\d+(?::[\d-]+)?:? (?P<text>.*)$")
# Of CPU time; a rule that does not come to an end by then is given up.
_TIMEOUT_S = "120"
_TIMED_OUT = re.compile(r"\bTimeout\b")
_NO_END = f"comes to no end in {_TIMEOUT_S} s, so it is not known what it finds"
# Two of the rules are in part programs in OCaml, whose compiler a kernel's developer need not have.
_NO_OCAML = "No OCaml compiler found"


class Coccinelle:
    """The check of the files of a patch, which are reported on once for each content."""

    name = "coccinelle"

    def __init__(self, source: Source, tree: CheckTree, home: Path) -> None:
        """Take the tree whose semantic patches they are, the one to look at, and a folder to remember in."""
        self._scripts = sorted((source.path / "scripts" / "coccinelle").rglob("*.cocci"))
        self._tree = tree
        self._home = home
        self._version = output(["spatch", "--version"]).partition("\n")[0]
        texts = [script.read_text(encoding="utf-8") for script in self._scripts]
        self._rules = hashlib.sha256("\0".join([self._version, _NO_END, *texts]).encode()).hexdigest()

    def inputs(self, patch: Patch) -> list[str]:
        """Return what decides the outcome for a patch.

        Raises:
            LabError: spatch is missing.
        """
        if not self._version:
            raise LabError(
                "spatch is missing, patches are checked with it: install the Debian package coccinelle, "
                f"or leave {self.name} out with --checks"
            )
        return [patch.key, self._rules]

    def before(self, patch: Patch) -> None:
        """Need nothing of the tree below: few files draw a report, and only of those is it asked there."""

    def after(self, patch: Patch) -> list[str]:
        """Look at the files of a patch, and below it at those that draw a report; return what is new.

        Of a rule that comes to no end it is not known what is new: that is wrong, even if it was so below.
        """
        after = self._reports(patch.commit, [name for name in patch.files if name.endswith((".c", ".h"))])
        before = self._reports(patch.before, [name for name, said in after.items() if said])
        known = {
            name: Counter({text: count for text, count in said.items() if not text.endswith(_NO_END)})
            for name, said in before.items()
        }
        return messages.new(known, after)

    def _reports(self, commit: str, names: Sequence[str]) -> Messages:
        """Return what is reported of the files that a commit has."""
        listed = git(self._tree.path, "ls-tree", "-r", "--name-only", commit, "--", *names) if names else ""
        texts = {name: git(self._tree.path, "show", f"{commit}:{name}") for name in listed.splitlines()}
        entries = {name: self._entry(name, text) for name, text in texts.items()}
        missing = {name: texts[name] for name, entry in entries.items() if not entry.exists()}
        if missing:
            self._home.mkdir(parents=True, exist_ok=True)
            for name, said in self._look(missing).items():
                partial = entries[name].with_suffix(f".{os.getpid()}")
                partial.write_text(json.dumps(said), encoding="utf-8")
                partial.replace(entries[name])
        return {name: Counter(json.loads(entry.read_text())) for name, entry in entries.items()}

    def _entry(self, name: str, text: str) -> Path:
        return self._home / hashlib.sha256(f"{self._rules}\0{name}\0{text}".encode()).hexdigest()[:32]

    def _look(self, texts: Mapping[str, str]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {name: [] for name in texts}
        with (
            tempfile.TemporaryDirectory(prefix="pwb-coccinelle-") as folder,
            ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool,
        ):
            for name, text in texts.items():
                Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
                Path(folder, name).write_text(text, encoding="utf-8")
            for report in pool.map(lambda script: self._report(script, folder, list(texts)), self._scripts):
                for line in report.splitlines():
                    match = _SAID.match(line)
                    if match and match["path"] in found:
                        said = f"{match['path']}: {messages.without_lines(match['text'])}"
                        found[match["path"]].append(said)
        return found

    def _report(self, script: Path, folder: str, names: Sequence[str]) -> str:
        text = script.read_text(encoding="utf-8")
        required = _REQUIRES.search(text)
        if not _REPORT.search(text) or (required and _numbers(required[1]) > _numbers(self._version)):
            return ""
        options = [word for line in _OPTIONS.findall(text) for word in line.split()]
        command = ["spatch", "-D", "report", "--no-show-diff", "--very-quiet", "--timeout", _TIMEOUT_S]
        done = subprocess.run(
            [*command, "--cocci-file", str(script), *options, "-I", str(self._tree.path / "include"), *names],
            cwd=folder,
            # Not the settings of the user's own .cocciconfig.
            env=os.environ | {"HOME": folder},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if _TIMED_OUT.search(done.stderr):
            # Given several files it gives them up together: each alone may come to an end.
            if len(names) == 1:
                return f"{names[0]}:1: {script.name} {_NO_END}"
            return "\n".join(self._report(script, folder, [name]) for name in names)
        if done.returncode != 0 and _NO_OCAML not in done.stderr:
            last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise LabError(f"spatch failed with {script.name}, which is of the kernel's own: {last}")
        return done.stdout


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:3]]
