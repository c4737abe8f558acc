# SPDX-License-Identifier: GPL-2.0
"""The change as a patch series with a cover letter, for ``git am`` on a pristine kernel tree."""

from __future__ import annotations

import tempfile
from pathlib import Path

import jinja2

from lab.tree.hooks import load_systems
from lab.tree.source import Source
from lab.tree.weave import BRANCH, LAB_TAG, git, weave
from lab.util.errors import LabError
from lab.util.paths import REPO

COVER_LETTER = Path("hooks", "cover-letter.j2")


def write_series(source: Source, output: Path, repo: Path = REPO) -> list[Path]:
    """Weave onto a kernel tree and write the commits of the change as patches, without those of the lab.

    Args:
        source: the tree that the patches are for.
        output: directory for the patches; it must not exist yet, or be empty.
        repo: clone that holds ``kernel/``, ``hooks/`` and the cover letter's template.

    Returns:
        The files in their order, the cover letter first.

    Raises:
        LabError: the change does not weave, the template does not render, or ``output`` holds something.
    """
    if output.exists() and not (output.is_dir() and not any(output.iterdir())):
        raise LabError(f"{output} is there already: name a new or an empty directory for the patches")
    woven = weave(source, repo)
    letter = _cover_letter(source, repo)
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".series-", dir=output.parent) as name:
        made = Path(name, "series")
        # The branch description is what git format-patch fills the cover letter from.
        options = ["--cover-letter", "--cover-from-description=subject", "--no-signature", "--quiet"]
        config = ["-c", f"branch.{BRANCH}.description={letter}"]
        git(
            woven.path,
            *config,
            "format-patch",
            *options,
            "-o",
            str(made.absolute()),
            f"{LAB_TAG}..{BRANCH}",
        )
        made.replace(output)
    return sorted(output.glob("*.patch"))


def _cover_letter(source: Source, repo: Path) -> str:
    template = repo / COVER_LETTER
    systems = load_systems(repo / "hooks", repo / "kernel", source.series)
    try:
        text = template.read_text()
        rendered = jinja2.Template(
            text, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
        ).render(source=source, systems=[system for system in systems if not system.lab])
    except FileNotFoundError:
        raise LabError(
            f"{COVER_LETTER} is missing: the cover letter of the series is rendered from it"
        ) from None
    except jinja2.TemplateError as error:
        raise LabError(f"{COVER_LETTER} does not render: {error}") from None
    return str(rendered).strip() + "\n"
