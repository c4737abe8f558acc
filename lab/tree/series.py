# SPDX-License-Identifier: GPL-2.0
"""The change as patch series for ``git am`` on a pristine tree: one per system, each with a cover letter."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import jinja2

from lab.tree import held
from lab.tree.hooks import Patch, load_patches
from lab.tree.source import Source
from lab.tree.weave import BRANCH, LAB_TAG, git
from lab.util.errors import LabError
from lab.util.paths import REPO

COVER_LETTER = Path("hooks", "cover-letter.j2")
MAINTAINERS = Path("scripts", "get_maintainer.pl")
_SUBJECT, _TEXT = "*** SUBJECT HERE ***", "*** BLURB HERE ***"
_FIGURES = re.compile(r"^\[figures: (.+)\]$", re.MULTILINE)
_SUBJECT_LINES = re.compile(r"^Subject: .*\n(?: .*\n)*", re.MULTILINE)
_ADDRESS = re.compile(r"<(.+@.+)>$")


@dataclass(frozen=True)
class System:
    """What is sent as one series: the patches whose folders begin with the same letter.

    Attributes:
        name: such as ``a-contexts``, of the file with its text.
        subject: of the cover letter.
        text: problem, design, figures and what is open.
        patches: in their order.
    """

    name: str
    subject: str
    text: str
    patches: tuple[Patch, ...]


def write_series(
    source: Source, output: Path, repo: Path = REPO, figures: Callable[[str], str] = str
) -> list[Path]:
    """Weave onto a kernel tree and write the commits of the change as patches, without those of the lab.

    A cover letter says to whom the series goes, where the tree can tell (:data:`MAINTAINERS`).

    Args:
        source: the tree that the patches are for.
        output: directory for a directory of patches per system; it must not exist yet, or be empty.
        repo: clone that holds ``kernel/``, ``hooks/`` and the cover letters' template.
        figures: makes the text for a line ``[figures: WHAT]`` of a cover letter.

    Returns:
        The files in their order, each system's cover letter first.

    Raises:
        LabError: the change does not weave, a system has no text, the template does not render, or
            ``output`` holds something.
    """
    if output.exists() and not (output.is_dir() and not any(output.iterdir())):
        raise LabError(f"{output} is there already: name a new or an empty directory for the patches")
    with held.woven(source, "writing the series", repo, waits=True) as woven:
        return _write(woven.path, source, output, repo, figures)


def _write(tree: Path, source: Source, output: Path, repo: Path, figures: Callable[[str], str]) -> list[Path]:
    systems = load_systems(source, repo)
    letters = [
        _FIGURES.sub(lambda found: figures(found[1]).rstrip("\n"), letter)
        for letter in _cover_letters(source, systems, repo)
    ]
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".series-", dir=output.parent) as name:
        made = Path(name, "series")
        commits = git(tree, "rev-list", "--reverse", f"{LAB_TAG}..{BRANCH}").split()
        before = LAB_TAG
        for system, letter in zip(systems, letters, strict=True):
            folder = made / system.name
            last = commits[len(system.patches) - 1]
            del commits[: len(system.patches)]
            options = ["--cover-letter", "--no-signature", "--quiet", "-o", str(folder.absolute())]
            git(tree, "format-patch", *options, f"{before}..{last}")
            cover = folder / "0000-cover-letter.patch"
            filled = cover.read_text().replace(_SUBJECT, system.subject, 1).replace(_TEXT, letter, 1)
            patches = [path for path in sorted(folder.iterdir()) if path != cover]
            cover.write_text(_addressed(filled, _recipients(tree, patches)))
            before = last
        made.replace(output)
    return sorted(output.glob("*/*.patch"))


def _addressed(mail: str, headers: str) -> str:
    """Put header lines behind the subject of a mail."""
    return _SUBJECT_LINES.sub(lambda found: found[0] + headers, mail, count=1)


def _recipients(tree: Path, patches: Sequence[Path]) -> str:
    """Return the header lines that say to whom patches go: lists get them, maintainers a copy."""
    if not (tree / MAINTAINERS).exists():
        return ""
    command = ["perl", str(MAINTAINERS), "--norolestats", "--nogit", "--nogit-fallback"]
    run = subprocess.run(
        [*command, *(str(patch.absolute()) for patch in patches)],
        cwd=tree,
        check=False,
        capture_output=True,
        text=True,
    )
    if run.returncode:
        raise LabError(f"{MAINTAINERS} of the kernel tree failed: {run.stderr.strip()}")
    everybody = run.stdout.splitlines()
    people = [one for one in everybody if _ADDRESS.search(one)]
    lists = [one for one in everybody if one not in people]
    headers = {"To": lists, "Cc": people}
    return "".join(f"{name}: " + ",\n ".join(of) + "\n" for name, of in headers.items() if of)


def load_systems(source: Source, repo: Path = REPO) -> list[System]:
    """Group the patches of the change by the systems that they belong to.

    Args:
        source: the tree that the patches are for.
        repo: clone that holds ``kernel/`` and ``hooks/``.

    Returns:
        The systems in the order of their letters.

    Raises:
        LabError: a malformed hook, or a system without its text.
    """
    patches = [
        patch for patch in load_patches(repo / "hooks", repo / "kernel", source.series) if not patch.lab
    ]
    return [
        _system(letter, tuple(group), repo) for letter, group in groupby(patches, lambda patch: patch.name[0])
    ]


def _system(letter: str, patches: tuple[Patch, ...], repo: Path) -> System:
    texts = sorted((repo / "hooks").glob(f"{letter}-*.txt"))
    if len(texts) != 1:
        raise LabError(
            f"hooks/{letter}-NAME.txt: expected one such file, with the subject and the text of the cover "
            f"letter of {patches[0].name} and what follows it, found {len(texts)}"
        )
    subject, _, text = texts[0].read_text().partition("\n")
    if not (subject.strip() and text.strip()):
        raise LabError(f"hooks/{texts[0].name}: expected a subject in the first line, and a text below it")
    return System(texts[0].stem, subject.strip(), text.strip(), patches)


def _cover_letters(source: Source, systems: Sequence[System], repo: Path) -> list[str]:
    try:
        template = jinja2.Template(
            (repo / COVER_LETTER).read_text(),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        return [
            template.render(source=source, system=system, before=systems[:number]).strip()
            for number, system in enumerate(systems)
        ]
    except FileNotFoundError:
        raise LabError(
            f"{COVER_LETTER} is missing: the cover letters of the series are rendered from it"
        ) from None
    except jinja2.TemplateError as error:
        raise LabError(f"{COVER_LETTER} does not render: {error}") from None
