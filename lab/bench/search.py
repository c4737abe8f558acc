# SPDX-License-Identifier: GPL-2.0
"""What to measure next of a user's job: first every number of contexts, then what is still open.

A verdict that its interval leaves open gets another round of stock, the best setting and the null. One that
is decided gets what else may be set beside the number of contexts: the kernel's own choice of it, the
policies that choose the context of an inode, and more workers. A gain goes on until what it costs has an
interval, too. One filesystem is done before the next begins, so that a budget that ends early leaves some
done and not all half done. In the first of these rounds stock and the best setting get a profile, which tells
why, where there is virtual time, of which it takes none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

from lab.experiment.axes import Affinity
from lab.experiment.schedule import Boot
from lab.experiment.setting import Setting
from lab.result.rounds import PAIRS
from lab.result.verdict import Group, Verdict

#: Rounds beyond which a verdict stays open: the intervals of more hardly get narrower.
MOST_ROUNDS = 8
#: Rounds of a gain with its costs: one chooses, the others judge.
JUDGED_ROUNDS = 1 + PAIRS
#: Workers of each context that are tried.
WORKERS = (2, 8)
#: What may be set beside a number of contexts, in words.
WHAT_ELSE = "the kernel's own number, other affinities and more workers"
NULL = Setting(variant="parallel", contexts=1)


def first_answer_first(boots: Iterable[Boot]) -> list[Boot]:
    """Sort the boots of a round: stock and the most contexts on each filesystem, the others, the bounds."""
    listed = list(boots)
    most = max((one.contexts or 0 for boot in listed for one in boot.settings), default=0)

    def rank(boot: Boot) -> int:
        if boot.setting.variant == "bdis":
            return 2
        return 0 if boot.setting.variant == "stock" or most in _contexts(boot) else 1

    return sorted(listed, key=rank)


def _contexts(boot: Boot) -> list[int | None]:
    return [one.contexts for one in boot.settings]


@dataclass
class Search:
    """Plans further boots of a job, beyond the first round.

    Attributes:
        boots: those of the first round.
        hopeless: why more contexts cannot bring anything, whatever is tried; empty if they may.
        places: how many boots run side by side.
        searched: groups whose further settings have been tried.
        profiled: groups of which stock and the best setting have a profile.
        rounds: how many rounds there are by now.
        own_rounds: how many of them a group was in.
    """

    boots: Sequence[Boot]
    hopeless: str = ""
    places: int = 1
    searched: set[Group] = field(default_factory=set)
    profiled: set[Group] = field(default_factory=set)
    rounds: int = 1
    own_rounds: Counter[Group] = field(default_factory=Counter)

    def further(self, verdicts: dict[Group, Verdict]) -> list[Boot]:
        """Return the boots of the next round; none where all is decided, and nothing is left to try.

        Args:
            verdicts: what is known so far.
        """
        if self.hopeless:
            return []
        found: list[Boot] = []
        for group, one in verdicts.items():
            # The next filesystem begins only where the boots of this one would leave places idle.
            if len(found) >= self.places:
                break
            if settings := self._wanted(group, one):
                self.own_rounds[group] += 1
                found += self._boots(group, settings)
        self.rounds += bool(found)
        return found

    def _wanted(self, group: Group, one: Verdict) -> list[Setting]:
        """Return what the next round of a group measures beside stock, the best first; none: it is done."""
        own = [self._setting(one), NULL]
        if one.kind != "open" and group not in self.searched:
            self.searched.add(group)
            return [*own, *_beside(own[0])]
        rounds = 1 + self.own_rounds[group]
        return own if rounds < {"open": MOST_ROUNDS, "gain": JUDGED_ROUNDS}.get(one.kind, 0) else []

    def untried(self, verdicts: dict[Group, Verdict]) -> list[str]:
        """Say of which filesystems and dirty limits nothing was tried but numbers of contexts, and why."""
        found = []
        for group, one in verdicts.items():
            if group in self.searched:
                continue
            is_open = one.kind == "open"
            why = "its verdict is still open" if is_open else "the time was up (--budget gives more)"
            why = self.hopeless or why
            where = f"on {group.fs} at {group.dirty_limit_mib} MiB"
            found.append(f"{where}: {WHAT_ELSE} were not tried, for {why}")
        return found

    @staticmethod
    def _setting(one: Verdict) -> Setting:
        return Setting(**{name: getattr(one.cell, name) for name in Setting.model_fields})

    def _boots(self, group: Group, settings: Sequence[Setting]) -> list[Boot]:
        """Make boots of a group for stock and for settings, the best one first, as in the first round."""
        found = []
        is_due = group.machine == "smp" and group not in self.profiled
        self.profiled.add(group)
        for boot in self.boots:
            same = (boot.device, boot.machine, boot.cpus, boot.fs) == group[:4]
            if not same or group.dirty_limit_mib not in [limit.mib for limit in boot.limits]:
                continue
            again = replace(boot, direct=None, round=self.rounds + 1)
            shown = replace(again, is_profiled=boot.is_profiled or is_due)
            if boot.setting.variant == "stock":
                found.append(shown)
            elif boot.setting.variant == "parallel" and not any(one.setting in settings for one in found):
                # Each in a boot of its own: a policy that was in force leaves its inodes where it put them.
                found += [
                    replace(shown if setting == settings[0] else again, settings=(setting,))
                    for setting in dict.fromkeys(settings)
                ]
        return found


def searches(boots: Sequence[Boot]) -> list[list[Boot]]:
    """Return the boots that try what else may be set, for each filesystem and dirty limit, in their order.

    Args:
        boots: those of the first round, in which the most contexts are taken to be best.
    """
    most = max((one.contexts or 0 for boot in boots for one in boot.settings), default=0)
    best = Setting(variant="parallel", contexts=most if most > 1 else None)
    groups = dict.fromkeys(
        Group(boot.device, boot.machine, boot.cpus, boot.fs, limit.mib, boot.setting.layout)
        for boot in boots
        for limit in boot.limits
    )
    plan = Search(boots)
    return [plan._boots(group, [best, NULL, *_beside(best)]) for group in groups]


def _beside(best: Setting) -> list[Setting]:
    """List what else may be set, beside the number of contexts that is best."""
    contexts = best.contexts
    found = [Setting(variant="parallel", contexts=None)]
    if not contexts:
        return found
    policies = [name for name in get_args(Affinity) if name != "fs"]
    found += [Setting(variant="parallel", contexts=contexts, affinity=name) for name in policies]
    return found + [Setting(variant="parallel", contexts=contexts, workers=number) for number in WORKERS]
