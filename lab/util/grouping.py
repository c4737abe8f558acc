# SPDX-License-Identifier: GPL-2.0
"""Things put together that share a key."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def grouped(key: Callable[[T], K], items: Iterable[T]) -> dict[K, list[T]]:
    """Return the items of each key, keys and items in their order of appearance.

    Args:
        key: of an item.
        items: sorted or not; :func:`itertools.groupby` would split a key that comes again.
    """
    found: dict[K, list[T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found
