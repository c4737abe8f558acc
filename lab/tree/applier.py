# SPDX-License-Identifier: GPL-2.0
"""Apply hooks to kernel files, and hold each to the number of places that it states.

A *place* is a maximal run of consecutive changed lines: what ``git diff -U0`` shows as one hunk.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from lab.tree import strictpatch
from lab.tree.hooks import Hook, read_text, to_bytes
from lab.util.errors import LabError

SPATCH_TIMEOUT_S = 300

_HUNK = re.compile(rb"^@@ -\d+(?:,\d+)? \+(\d+)", re.MULTILINE)


class Overlay:
    """Files changed or added on top of a kernel tree that stays as it is."""

    def __init__(self, stock: Path) -> None:
        """Start with nothing changed on top of ``stock``."""
        self.stock = stock
        self.changed: dict[str, str] = {}

    def read(self, path: str) -> str | None:
        """Return a file as changed so far, or None where there is no such file."""
        if path in self.changed:
            return self.changed[path]
        try:
            return read_text(self.stock / path)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, path: str, text: str) -> None:
        """Change or add a file."""
        self.changed[path] = text


class Applier:
    """Applies hooks to an overlay, remembering what spatch made of the same input before."""

    def __init__(self, memo: Path) -> None:
        """Keep results in the directory ``memo``, which may not be there yet."""
        self._memo = memo
        self._used: set[str] = set()

    def apply(self, hook: Hook, overlay: Overlay) -> None:
        """Apply one hook.

        Args:
            hook: what to apply.
            overlay: files to change.

        Raises:
            LabError: a file is missing, the hook changes another number of places than it states, or spatch
                fails.
        """
        before: dict[str, str] = {}
        for file in hook.files:
            text = overlay.read(file)
            if text is None:
                raise LabError(
                    f"hook {hook.name} names {file}, which is not in the kernel tree; update the hook"
                )
            before[file] = text
        make = self._semantic_patch if hook.path.suffix == ".cocci" else _diff
        after = make(hook, overlay, before)
        for file, text in before.items():
            lines = changed_places(text, after[file])
            expected = hook.places.get(file, 0)
            if len(lines) != expected:
                where = f" (lines {', '.join(map(str, lines))})" if lines else ""
                raise LabError(
                    f"hook {hook.name} changed {len(lines)} places in {file}{where}, expected {expected}: "
                    f"the kernel moved there; update the hook{_unparsed(hook, file, text)}"
                )
            if lines:
                overlay.write(file, after[file])

    def forget_unused(self) -> None:
        """Drop the results that no call of :meth:`apply` has used."""
        if self._memo.is_dir():
            for entry in self._memo.iterdir():
                if entry.name not in self._used:
                    entry.unlink()

    def _semantic_patch(self, hook: Hook, overlay: Overlay, before: Mapping[str, str]) -> dict[str, str]:
        headers = {path: text for path, text in overlay.changed.items() if path.endswith(".h")}
        macros = [read_text(path) for path in _macro_files(hook)]
        code = read_text(Path(__file__))
        key = _digest([code, hook.body, *macros, *_flatten(before), *_flatten(headers)])
        self._used.add(key)
        entry = self._memo / key
        try:
            remembered = json.loads(entry.read_text())
            if isinstance(remembered, dict) and set(remembered) == set(before):
                return {file: str(text) for file, text in remembered.items()}
        except (FileNotFoundError, json.JSONDecodeError):
            pass
        after = _run_spatch(hook, overlay.stock, headers, before)
        self._memo.mkdir(parents=True, exist_ok=True)
        partial = entry.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(after))
        partial.replace(entry)
        return after


def _diff(hook: Hook, _overlay: Overlay, before: Mapping[str, str]) -> dict[str, str]:
    lines = hook.body.splitlines(keepends=True)
    while lines and (lines[0].startswith("#") or not lines[0].strip()):
        lines.pop(0)
    try:
        parsed = strictpatch.parse("".join(lines))
    except strictpatch.PatchError as error:
        raise LabError(f"hook {hook.name} is not a diff that a hook may hold: {error}") from None
    if unstated := sorted(set(parsed) - set(before)):
        raise LabError(f"hook {hook.name} changes {unstated[0]}, which its places header does not name")
    after = dict(before)
    for file, hunks in parsed.items():
        try:
            after[file] = strictpatch.apply(before[file], hunks)
        except strictpatch.PatchError as error:
            raise LabError(
                f"hook {hook.name}, {file}: {error}: the kernel moved there; update the hook"
            ) from None
    return after


def _run_spatch(
    hook: Hook, stock: Path, headers: Mapping[str, str], before: Mapping[str, str]
) -> dict[str, str]:
    spatch = shutil.which("spatch")
    if spatch is None:
        raise LabError("spatch is missing, hooks need it: install the Debian package coccinelle")
    with tempfile.TemporaryDirectory(prefix="pwb-hook-") as name:
        scratch = Path(name)
        for file, text in {**headers, **before}.items():
            (scratch / file).parent.mkdir(parents=True, exist_ok=True)
            (scratch / file).write_bytes(to_bytes(text))
        # The scratch tree goes first: a header that an earlier hook changed must be read as changed.
        roots = [scratch / "include", stock / "include"]
        roots += [base / Path(file).parent for file in before for base in (scratch, stock)]
        includes = [part for root in dict.fromkeys(roots) for part in ("-I", str(root))]
        options = ["--smpl-spacing", *_resolved_options(hook)]
        command = [
            spatch,
            "--sp-file",
            str(hook.path.resolve()),
            "--very-quiet",
            "--no-show-diff",
            "--in-place",
        ]
        try:
            done = subprocess.run(
                [*command, *options, *includes, *before],
                cwd=scratch,
                # spatch reads .cocciconfig in the home and the working directory: let there be none.
                env={**os.environ, "HOME": name},
                capture_output=True,
                text=True,
                errors="replace",
                timeout=SPATCH_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise LabError(
                f"hook {hook.name}: spatch took longer than {SPATCH_TIMEOUT_S} s, make the rule narrower"
            ) from None
        said = " / ".join((done.stderr or done.stdout).strip().splitlines()[-6:])
        if done.returncode != 0:
            raise LabError(
                f"hook {hook.name}: spatch refused it (status {done.returncode}), mend the rule: {said}"
            )
        return {file: read_text(scratch / file) for file in before}


def _unparsed(hook: Hook, file: str, text: str) -> str:
    """Name the lines that spatch cannot parse: it skips the function or definition there silently."""
    spatch = shutil.which("spatch")
    if hook.path.suffix != ".cocci" or spatch is None:
        return ""
    with tempfile.TemporaryDirectory(prefix="pwb-parse-") as name:
        copy = Path(name, Path(file).name)
        copy.write_bytes(to_bytes(text))
        done = subprocess.run(
            [spatch, "--parse-c", str(copy)],
            cwd=name,
            env={**os.environ, "HOME": name},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        found = re.findall(rf'File "{re.escape(str(copy))}", line (\d+)', done.stdout + done.stderr)
    lines = ", ".join(str(line) for line in sorted({int(line) for line in found}))
    return f" (spatch skips what it cannot parse there: near line {lines})" if lines else ""


def _resolved_options(hook: Hook) -> list[str]:
    resolved: list[str] = []
    for option in hook.options:
        is_macro_file = bool(resolved) and resolved[-1] == "--macro-file-builtins"
        resolved.append(str((hook.path.parent / option).resolve()) if is_macro_file else option)
    return resolved


def _macro_files(hook: Hook) -> list[Path]:
    resolved = _resolved_options(hook)
    pairs = pairwise(resolved)
    files = [Path(value) for option, value in pairs if option == "--macro-file-builtins"]
    for file in files:
        if not file.is_file():
            raise LabError(f"hook {hook.name} names the macro file {file.name}, expected it beside the hook")
    return files


def changed_places(before: str, after: str) -> list[int]:
    """Return the line, in the new text, of each maximal run of consecutive changed lines."""
    if before == after:
        return []
    with tempfile.TemporaryDirectory(prefix="pwb-diff-") as name:
        old, new = Path(name, "old"), Path(name, "new")
        old.write_bytes(to_bytes(before))
        new.write_bytes(to_bytes(after))
        diff = subprocess.run(
            ["git", "diff", "--no-index", "--no-color", "--no-ext-diff", "--text", "-U0", str(old), str(new)],
            cwd=name,
            env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
            capture_output=True,
            check=False,
        )
    return [int(line) for line in _HUNK.findall(diff.stdout)]


def _flatten(files: Mapping[str, str]) -> Iterator[str]:
    for path in sorted(files):
        yield path
        yield files[path]


def _digest(parts: Iterable[str]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = to_bytes(part)
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()
