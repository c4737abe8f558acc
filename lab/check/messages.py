# SPDX-License-Identifier: GPL-2.0
"""What compilers and checkers say of a kernel, by what they said it of, in a log of make.

The log has to be one in which the lines of each target stand together (``make --output-sync=target``).
"""

from __future__ import annotations

import functools
import operator
import re
from collections import Counter
from collections.abc import Iterable, Mapping

#: Of each target that was made, ``file: text`` of what was said, and how often.
Messages = dict[str, Counter[str]]

# What kbuild says before it makes something: "  CC [M]  fs/inode.o", "  CHECK   ../fs/inode.c".
_TARGET = re.compile(r"^  [A-Z][A-Z0-9]*(?: \[M\])?\s+(?P<target>\S+)$")
_SAID = re.compile(
    r"^(?:\.\./)?(?P<path>[^\s:]+|\{standard input\}):(?:\d+:)*(?:\d+-\d+:)? ?"
    r"(?P<text>(?:fatal )?(?:warning|error): ?.*)$",
    re.IGNORECASE,
)
_KERNEL_DOC = re.compile(r"^(?:Warning|Error): (?:\.\./)?(?P<path>[^\s:]+):\d+ (?P<text>.*)$", re.IGNORECASE)
# Of kconfig, which names a setting, and of modpost, which names what it is about.
_OTHER = re.compile(r"^(?P<text>WARNING: .*)$")
# Of compiler and checkers, of kconfig, of the linker, of make.
_ERROR = re.compile(r"\berror: |\bsyntax error\b|undefined reference|multiple definition|\*\*\* ")


def parse(lines: Iterable[str]) -> Messages:
    """Return what a log says of each target that it names, of those without a word too."""
    found: Messages = {}
    target = ""
    for line in lines:
        if match := _TARGET.match(line):
            target = match["target"]
            found[target] = Counter()
        elif match := _SAID.match(line) or _KERNEL_DOC.match(line):
            found.setdefault(target, Counter())[f"{match['path']}: {without_lines(match['text'])}"] += 1
        elif match := _OTHER.match(line):
            found.setdefault(target, Counter())[re.sub(r"\(?0x[0-9a-f]+\)?", "", match["text"])] += 1
    return found


def without_lines(text: str) -> str:
    """Return a message without the numbers of lines that it names, which change with what is above."""
    return re.sub(r"\b(lines?) \d+", r"\1 N", text.strip())


def new(before: Mapping[str, Counter[str]], after: Mapping[str, Counter[str]]) -> list[str]:
    """Return what is said after a patch and was not before it, each once.

    A target is compared with itself. One that is new is compared with what any other said before: of a header
    that it includes it says what others do.

    Args:
        before: what was last said of each target before the patch.
        after: what was said of those made since.
    """
    most: Counter[str] = functools.reduce(operator.or_, before.values(), Counter())
    more = (text for target, said in after.items() for text in said - before.get(target, most))
    return list(dict.fromkeys(more))


def errors(lines: Iterable[str]) -> list[str]:
    """Return the lines of a log that say why make failed; make's own only where there are no others."""
    complaints = [line.strip().removeprefix("../") for line in lines if _ERROR.search(line)]
    said = [line for line in complaints if "***" not in line]
    return list(dict.fromkeys(said or complaints))
