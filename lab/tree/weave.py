# SPDX-License-Identifier: GPL-2.0
"""Weave our files and hooks onto a kernel tree, as a git tree with one commit per patch.

``docs/weave.md`` says how the woven tree is kept and why.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lab.tree.applier import Applier, Overlay
from lab.tree.hooks import Patch, load_patches, own_files, read_text, to_bytes
from lab.tree.source import Source
from lab.tree.stock import altered, copy_stock
from lab.util.errors import LabError
from lab.util.lock import exclusive
from lab.util.paths import REPO, cache_dir

STOCK_TAG = "stock"
LAB_TAG = "lab"
BRANCH = "woven"
#: The first patch that changes what a kernel does: with it a BDI can have several contexts.
FIRST_TO_CHANGE = "a10-number"
#: What is woven: the patches of the lab alone, those of the change too that only prepare, or all.
Part = Literal["lab", "prepared", "all"]

# Fixed, so that the same input gives the same commit ids on every machine.
_IDENT = "parallel writeback <pwb@localhost> 1767225600 +0000"
_CODE = ("applier.py", "hooks.py", "stock.py", "strictpatch.py", "weave.py")


@dataclass(frozen=True)
class Woven:
    """A kernel tree with our change in it.

    Attributes:
        path: the tree; a git work tree with a branch ``woven`` and two tags: ``stock``, the commit before all
            patches, and ``lab``, the one before those of the change.
        source: what it was woven from.
        identity: content key (hex) over the source, what was woven and the code that weaves.
    """

    path: Path
    source: Source
    identity: str


@dataclass(frozen=True)
class _Commit:
    subject: str
    body: str
    files: Mapping[str, bytes]
    lab: bool = False


def weave(source: Source, repo: Path = REPO, *, part: Part = "all") -> Woven:
    """Copy ``kernel/`` over a kernel tree and apply ``hooks/``.

    There is a woven tree for each part of a source in the cache. Weaving again gives a new modification time
    only to files whose content changes, so that make rebuilds little; where nothing changed it does nothing.

    Args:
        source: the tree to weave onto; it stays as it is.
        repo: clone that holds ``kernel/`` and ``hooks/``.
        part: weave this much.

    Returns:
        The woven tree.

    Raises:
        LabError: a hook does not fit this kernel, or a file of ours has no place; the woven tree is then as
            it was before.
    """
    home = cache_dir() / "woven" / f"{source.identity}{'' if part == 'all' else f'-{part}'}"
    identity = weave_identity(source, repo, part=part)
    woven = Woven(home / "linux", source, identity)
    if _is_intact(woven, home / "stamp.json"):
        return woven
    with exclusive(home / "lock", f"weaving onto {source.version}"):
        if _is_intact(woven, home / "stamp.json"):
            return woven
        patches = _patches(source, repo, part)
        commits = _commits(source, patches, Applier(home / "spatch"))
        copy_stock(source.path, woven.path)
        _write_files(woven, commits, home)
        _write_history(woven.path, commits)
        _write_stamp(home / "stamp.json", identity, _final_files(commits))
    return woven


def weave_identity(source: Source, repo: Path = REPO, *, part: Part = "all") -> str:
    """Return the content key that weaving this source with this clone's files has.

    Args:
        source: the tree to weave onto.
        repo: clone that holds ``kernel/`` and ``hooks/``.
        part: as for :func:`weave`.

    Raises:
        LabError: a malformed hook or ``series.toml``.
    """
    digest = hashlib.blake2b(source.identity.encode(), digest_size=16)
    patches = _patches(source, repo, part)
    files = [path for patch in patches for path in patch.files.values()]
    hooks = [path for patch in patches for path in own_files(repo / "hooks" / patch.name)]
    code = [Path(__file__).with_name(name) for name in _CODE]
    for path in [*files, *hooks, *code]:
        name = path.relative_to(repo).as_posix() if path.is_relative_to(repo) else path.name
        data = path.read_bytes()
        digest.update(f"\0{name}\0{_mode(path)}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()


def _patches(source: Source, repo: Path, part: Part) -> list[Patch]:
    patches = load_patches(repo / "hooks", repo / "kernel", source.series)
    if part == "all":
        return patches
    return [patch for patch in patches if patch.lab or (part == "prepared" and patch.name < FIRST_TO_CHANGE)]


def _is_intact(woven: Woven, stamp: Path) -> bool:
    try:
        recorded = json.loads(stamp.read_text())
        files = recorded["files"]
        same = recorded["identity"] == woven.identity and (woven.path / ".git" / "HEAD").is_file()
        same = same and all(_hash_or_none(woven.path / path) == sha for path, sha in files.items())
        return same and not any(altered(woven.source.path, woven.path, files))
    except (FileNotFoundError, ValueError, KeyError):
        return False


def _hash_or_none(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def _commits(source: Source, patches: list[Patch], applier: Applier) -> list[_Commit]:
    """Work out every commit, the stock one first, before anything in the woven tree changes."""
    overlay = Overlay(source.path)
    commits: list[_Commit] = []
    for patch in patches:
        before = dict(overlay.changed)
        for path, file in patch.files.items():
            if (source.path / path).exists():
                raise LabError(
                    f"kernel/{path} is a file of the stock kernel already: files of ours must be new, "
                    f"change stock ones with a hook"
                )
            overlay.write(path, read_text(file))
        for hook in patch.hooks:
            applier.apply(hook, overlay)
        files = {path: to_bytes(text) for path, text in overlay.changed.items() if before.get(path) != text}
        if not files:
            raise LabError(
                f"hooks/{patch.name} changes nothing on {source.version}: "
                f"give it files or hooks, or remove it"
            )
        commits.append(_Commit(patch.title, patch.message, files, patch.lab))
    applier.forget_unused()
    stock = {path: source.path / path for path in overlay.changed if (source.path / path).exists()}
    base = _Commit(
        f"Linux {source.version}",
        "The stock files that the commits on top of this one change, and no others.",
        {path: file.read_bytes() for path, file in stock.items()},
    )
    return [base, *commits]


def _final_files(commits: list[_Commit]) -> dict[str, bytes]:
    return {path: data for commit in commits for path, data in commit.files.items()}


def _write_files(woven: Woven, commits: list[_Commit], home: Path) -> None:
    wanted = _final_files(commits)
    record = home / "written.json"
    try:
        written = set(json.loads(record.read_text()))
    except (FileNotFoundError, json.JSONDecodeError):
        written = set()
    # Recorded first: after a crash in between, the next weave knows every file that may differ from stock.
    (home / "stamp.json").unlink(missing_ok=True)
    _replace(record, json.dumps(sorted(written | set(wanted))).encode())
    for path in [*(written - set(wanted)), *altered(woven.source.path, woven.path, written | set(wanted))]:
        stock = woven.source.path / path
        if stock.exists():
            _write_if_different(woven.path / path, stock.read_bytes())
        else:
            (woven.path / path).unlink(missing_ok=True)
    for path, data in wanted.items():
        _write_if_different(woven.path / path, data)
    _replace(record, json.dumps(sorted(wanted)).encode())


def _write_if_different(path: Path, data: bytes) -> None:
    if not path.is_file() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, data)


def _replace(path: Path, data: bytes) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_bytes(data)
    if path.exists():
        shutil.copymode(path, partial)
    elif data.startswith(b"#!"):
        partial.chmod(0o755)
    partial.replace(path)


def _write_stamp(stamp: Path, identity: str, files: Mapping[str, bytes]) -> None:
    hashes = {path: hashlib.sha256(data).hexdigest() for path, data in files.items()}
    _replace(stamp, json.dumps({"identity": identity, "files": hashes}).encode())


def _write_history(tree: Path, commits: list[_Commit]) -> None:
    shutil.rmtree(tree / ".git", ignore_errors=True)
    git(tree, "init", "--quiet", f"--initial-branch={BRANCH}", "--template=")
    (tree / ".git" / "info").mkdir()
    # The stock commit holds a few files of a hundred thousand; git status must not list the others.
    (tree / ".git" / "info" / "exclude").write_text("*\n")
    git(tree, "fast-import", "--quiet", stdin=b"".join(_fast_import(commits, tree)))
    git(tree, "read-tree", BRANCH)
    git(tree, "update-index", "-q", "--refresh")


def _fast_import(commits: list[_Commit], tree: Path) -> Iterator[bytes]:
    # load_patches() has put the lab's patches first: their number is that of the last commit among them.
    tags = {STOCK_TAG: 0, LAB_TAG: sum(commit.lab for commit in commits)}
    for number, commit in enumerate(commits):
        message = f"{commit.subject}\n\n{commit.body}\n".encode()
        yield f"commit refs/heads/{BRANCH}\nauthor {_IDENT}\ncommitter {_IDENT}\n".encode()
        yield b"data %d\n%s\n" % (len(message), message)
        for path, data in sorted(commit.files.items()):
            yield f"M {_mode(tree / path)} inline {path}\ndata {len(data)}\n".encode() + data + b"\n"
        for tag in (tag for tag, tagged in tags.items() if tagged == number):
            yield f"reset refs/tags/{tag}\nfrom refs/heads/{BRANCH}\n\n".encode()


def _mode(path: Path) -> str:
    return "100755" if os.access(path, os.X_OK) else "100644"


def git(tree: Path, *arguments: str, stdin: bytes = b"") -> str:
    """Run git in a woven tree, without the user's configuration, at the fixed time of the woven commits.

    Args:
        tree: the work tree.
        arguments: git's command line.
        stdin: what git reads.

    Returns:
        What git printed.

    Raises:
        LabError: git failed; its own words are in the message.
    """
    name, rest = _IDENT.split(" <")
    email, date = rest.split("> ")
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    own |= {"GIT_DIR": str(tree / ".git"), "GIT_WORK_TREE": str(tree)}
    for role in ("AUTHOR", "COMMITTER"):
        own |= {f"GIT_{role}_NAME": name, f"GIT_{role}_EMAIL": email, f"GIT_{role}_DATE": date}
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")} | own
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=tree, env=env, input=stdin, capture_output=True, check=False
        )
    except FileNotFoundError:
        raise LabError("git is missing, weaving needs it: install the Debian package git") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        raise LabError(f"git {arguments[0]} failed in the woven tree: {said}")
    return done.stdout.decode(errors="replace")
