# SPDX-License-Identifier: GPL-2.0
"""What a result says of contexts: gains, losses, and what the null of the same result explains."""

from __future__ import annotations

import math
import random
import re

import pytest

from lab.experiment.measure import COSTS, Spread
from lab.profile.bottleneck import Bottleneck
from lab.result import results, verdict
from lab.result.interval import Apart, paired_interval, ratio_interval
from lab.result.results import Cell
from tests import samples

# Rounds and parts of the window, as of a job file of one's own.
ROUNDS = 6
# How far the mean of three rounds is taken to lie off where no null is measured, as a logarithm.
ASSUMED = 1.96 * math.log(1.05) / math.sqrt(3)


def cells(**rates: list[float]) -> list[Cell]:
    """Return the cells of stock and of numbers of contexts (``c4``), with a rate for each round."""
    stock = samples.measured("stock", 1, 128, rates.pop("stock", [99.0, 100, 101]))
    bdis = rates.pop("bdis", None)
    bound = samples.measured("bdis", None, 128, bdis) if bdis else []
    ours = [samples.measured("parallel", int(name[1:]), 128, of) for name, of in rates.items()]
    return results.cells("s", [*stock, *bound, *(one for group in ours for one in group)])


def judged(**rates: list[float]) -> verdict.Verdict:
    found = verdict.verdict(cells(**rates))
    assert found
    return found


def test_a_gain_beyond_the_null_is_one() -> None:
    found = judged(c1=[99, 100, 101], c4=[199, 200, 202])
    assert found.kind == "gain"
    assert found.text == "best at 4 contexts, 2.00x stock [2.00, 2.00], null ±0.0%"
    assert found.line == "echo 4 > /sys/class/bdi/MAJOR:MINOR/nwritebacks"


def test_the_interval_is_of_rounds_that_did_not_choose() -> None:
    found = judged(c4=[900, 199, 201, 200, 200], stock=[50, 99, 101, 100, 100])
    assert found.interval
    assert found.interval.ratio == pytest.approx(2, rel=0.01)
    assert found.interval.low < 2 < found.interval.high


def test_a_single_round_has_an_interval_as_wide_as_all_settings_need() -> None:
    [cell] = results.cells("s", samples.measured("parallel", 4, 128, [100.0]))
    ours = cell.model_copy(update={"rates": ((100.0, 102.0, 98.0),)})
    stock = ours.model_copy(update={"variant": "stock", "contexts": 1})
    widths = []
    for count in (1, 4):
        others = [
            ours.model_copy(update={"contexts": 4 + n, "rates": ((90.0, 90.0),)}) for n in range(1, count)
        ]
        # Boots do not lie apart at all.
        found = verdict.verdict([stock, ours, *others], apart=Apart.of([1.0]))
        assert found
        assert found.interval
        assert found.interval == ratio_interval(ours.rates[0], stock.rates[0], 1 - 0.05 / count)
        widths.append(found.interval.high - found.interval.low)
    assert widths[1] > widths[0]


def test_a_null_that_is_off_is_held_against_it() -> None:
    assert judged(c1=[120] * 3, c4=[115] * 3, stock=[100] * 3).kind == "open"
    assert judged(c1=[104] * ROUNDS, c4=[103] * ROUNDS, stock=[100] * ROUNDS).kind == "same"
    assert judged(c1=[100] * 3, c4=[115] * 3, stock=[100] * 3).kind == "gain"


@pytest.mark.parametrize(("null", "kind"), [(100.0, "gain"), (101.0, "gain"), (103.0, "open")])
def test_one_round_is_trusted_as_far_as_the_boots_of_its_null_lie_together(null: float, kind: str) -> None:
    def cell(middle: float) -> list[Cell]:
        rates = (tuple(middle + off for off in (-1.0, 0, 1)),)
        return [one.model_copy(update={"rates": rates}) for one in cells(c1=[middle], stock=[middle])]

    stock, one, four = cell(100.0)[0], cell(null)[1], cell(130.0)[1].model_copy(update={"contexts": 4})
    found = verdict.verdict([stock, one, four])
    assert found
    assert found.kind == kind


def test_boots_of_all_groups_on_a_device_tell_how_far_they_lie_apart() -> None:
    """One null is little to go by, and in a group that has none others stand for it."""

    def group(fs: str, null: float | None, four: float) -> list[Cell]:
        made = cells(c1=[null or 100.0], c4=[four], stock=[100.0])
        off = (-1.0, 0.0, 1.0)
        return [
            cell.model_copy(update={"fs": fs, "rates": (tuple(cell.mib_s.median + one for one in off),)})
            for cell in made
            if null or not verdict.is_null(cell)
        ]

    several = [*group("xfs", 103, 130), *group("ext4", 101, 130), *group("f2fs", None, 130)]
    found = [one.interval for one in verdict.verdicts(several).values()]
    assert all(found)
    widths = [one.high / one.low for one in found if one]
    # Student's t of the two nulls; the group's own would give 2.1 for the first one.
    assert widths[1:] == pytest.approx([widths[1]] * 2)
    assert 1.2 < widths[1] < widths[0] < 1.35
    elsewhere = [cell.model_copy(update={"device": "other"}) for cell in group("xfs", 140, 130)]
    assert verdict.verdicts([*several, *elsewhere])[verdict.Group.of(several[0])].interval == found[0]


def test_a_null_is_of_the_rounds_that_have_both() -> None:
    """The last round may have been cut off before its null, and rounds may lie far apart."""
    found = judged(c1=[100, 100], c4=[130, 130, 65], stock=[100, 100, 50])
    assert (found.null, found.is_null_measured) == (0.0, True)
    assert found.interval
    assert found.interval.low > 1.25


def test_extents_of_later_rounds_do_not_choose() -> None:
    made = cells(c2=[105.0] * ROUNDS, c4=[109.0, 200, 200], stock=[100.0] * ROUNDS)
    found = verdict.verdict([in_pieces(cell, 9 if cell.contexts == 4 else 1) for cell in made])
    assert found
    assert found.cell.contexts == 2


def test_null_does_not_choose() -> None:
    """A null that is far off by chance makes no setting as good as a better one."""
    assert judged(c1=[80.0] * 3, c4=[204.0] * 3, c8=[247.0] * 3, stock=[100.0] * 3).cell.contexts == 8


def test_rounds_are_compared_one_by_one() -> None:
    """What all settings of a round have in common says nothing about the ratio."""
    stock = [50.0, 100, 200, 80, 160]
    found = judged(c1=stock, c4=[rate * 1.2 for rate in stock], stock=stock)
    assert found.interval == pytest.approx((1.2, 1.2, 1.2))


def test_a_round_without_the_setting_is_left_out() -> None:
    runs = [
        *samples.measured("stock", 1, 128, [100.0, 50, 100, 200, 100]),
        *samples.measured("parallel", 4, 128, [200.0] * 5)[:1],
        *samples.measured("parallel", 4, 128, [200.0, 0.1, 200, 400, 200])[2:],
    ]
    found = verdict.verdict(results.cells("s", runs))
    assert found
    assert found.interval == pytest.approx((2, 2, 2))


def test_a_whole_run_is_not_compared_with_a_window() -> None:
    rates = [100.0] * ROUNDS
    short = [
        cell.model_copy(update={"steady": cell.contexts != 4})
        for cell in cells(c1=rates, c4=[120.0] * ROUNDS, stock=rates)
    ]
    found = verdict.verdict(short)
    assert found
    assert found.kind == "open"
    assert "only one of the two ran all through the window" in found.text


def test_direct_io_is_no_bound_where_the_cache_does_better() -> None:
    same = [100.0] * ROUNDS

    def why(ratio: float) -> str:
        near = [cell.model_copy(update={"ratio_to_direct": ratio}) for cell in cells(c4=same, stock=same)]
        found = verdict.verdict(near)
        assert found
        return found.why

    assert why(1.0) == "stock comes to 1.00 of direct I/O"
    assert why(16.0) == ""


def test_a_loss_is_said() -> None:
    found = judged(c1=[100] * ROUNDS, c4=[60] * ROUNDS, stock=[100] * ROUNDS)
    assert found.kind == "loss"
    assert found.text == "no gain: at best 0.60x stock [0.60, 0.60], with 4 contexts, null ±0.0%"
    assert found.line == ""


def test_what_cannot_be_told_is_not_called_the_same() -> None:
    found = judged(c1=[99, 101] * 3, c4=[80, 120] * 3, stock=[99, 101] * 3)
    assert found.kind == "open"
    assert found.text.startswith("not told apart from stock")
    assert judged(c4=[101, 99.5] * 3, stock=[99.5, 101] * 3).kind == "same"


def test_one_rate_gives_no_interval() -> None:
    found = judged(c1=[100], c4=[200], stock=[100])
    assert found.kind == "open"
    assert found.text == (
        "not judged: 2.00x stock with 4 contexts, too few rates for an interval, null ±0.0%"
    )


def test_what_can_be_judged_is() -> None:
    stock = [100.0] * ROUNDS
    found = judged(c1=stock, c4=[200.0] * ROUNDS, c8=[260.0], stock=stock)
    assert (found.kind, found.cell.contexts) == ("gain", 4)


def test_a_little_more_is_not_called_a_gain() -> None:
    stock = [100.0, 100.1, 99.9, 100] * 2
    found = judged(c1=stock, c4=[101.8, 103.4, 102.0, 103.4] * 2, stock=stock)
    assert found.kind == "open"
    assert found.text.startswith("a little more than stock, and no gain to rely on: 1.03x stock [1.0")
    wide = judged(c1=stock, c4=[110.0, 250, 130, 200], stock=stock)
    assert wide.text.startswith("not told apart from stock: ")


def test_line_to_type_names_what_is_no_file_of_the_bdi() -> None:
    rates = [200.0] * ROUNDS
    for choice, line in (
        ({"ag_mode": "rotor"}, "for kind in overwrite delalloc; do echo rotor > /sys/fs/xfs/DEVICE/w"),
        ({"placement": "generic"}, "echo 4 > /sys/fs/xfs/DEVICE/write_streams/generic_ags"),
        ({"placement": "stream"}, "echo STREAMS > /sys/fs/xfs/DEVICE/write_streams/software; wbctl stream"),
    ):
        runs = [
            *samples.measured("stock", 1, 128, [100.0] * ROUNDS),
            *samples.measured("parallel", 1, 128, rates, **choice),
        ]
        [one] = verdict.verdicts(results.cells("s", runs)).values()
        assert f"echo 1 > /sys/class/bdi/MAJOR:MINOR/nwritebacks; {line}" in one.line


def test_one_context_is_never_recommended() -> None:
    assert verdict.verdict(cells(c1=[200] * ROUNDS)) is None
    assert judged(c1=[200] * ROUNDS, c2=[150] * ROUNDS).cell.contexts == 2


def test_fewest_contexts_that_are_as_good() -> None:
    stock = [100.0] * ROUNDS
    assert judged(c1=[98.0] * ROUNDS, c4=[197] * ROUNDS, c8=[200] * ROUNDS, stock=stock).cell.contexts == 4
    assert judged(c1=[99.0] * ROUNDS, c4=[190] * ROUNDS, c8=[200] * ROUNDS, stock=stock).cell.contexts == 8


def test_least_to_set_that_is_as_good() -> None:
    rates = [200.0] * ROUNDS
    runs = [
        *samples.measured("stock", 1, 128, [100.0] * ROUNDS),
        *samples.measured("parallel", 4, 128, rates, affinity="rotor"),
    ]
    [alone] = verdict.verdicts(results.cells("s", runs)).values()
    bdi = "/sys/class/bdi/MAJOR:MINOR"
    assert alone.line == f"echo 4 > {bdi}/nwritebacks; echo rotor > {bdi}/wb_affinity"
    runs += samples.measured("parallel", 4, 128, rates)
    [plain] = verdict.verdicts(results.cells("s", runs)).values()
    assert plain.line == f"echo 4 > {bdi}/nwritebacks"
    runs += samples.measured("parallel", None, 128, rates)
    [own] = verdict.verdicts(results.cells("s", runs)).values()
    assert own.line == f"echo auto > {bdi}/nwritebacks"


def test_a_setting_of_a_later_round_is_chosen_by_stock_of_that_round() -> None:
    """A round in which all is faster makes nothing better that was tried in it only."""
    runs = [
        *samples.measured("stock", 1, 128, [100.0, 150, 150, 150]),
        *samples.measured("parallel", 4, 128, [200.0, 300, 300, 300]),
        *samples.measured("parallel", 4, 128, [1.0, 270, 270, 270], affinity="rotor")[1:],
        *samples.measured("parallel", 2, 128, [1.0, 270, 270, 270])[1:],
    ]
    found = verdict.verdict(results.cells("s", runs))
    assert found
    assert (found.cell.contexts, found.cell.affinity) == (4, None)


def in_pieces(cell: Cell, pieces: float) -> Cell:
    of_rounds = dict(cell.costs_by_round) | {"extents": (pieces,) * ROUNDS}
    extents = Spread(median=pieces, min=pieces, max=pieces)
    return cell.model_copy(update={"extents": extents, "costs_by_round": of_rounds})


@pytest.mark.parametrize(("rate", "pieces", "best"), [(106, 9, 2), (106, 1.9, 4), (115, 9, 4)])
def test_pieces_are_not_worth_a_small_gain(rate: float, pieces: float, best: int) -> None:
    made = cells(c1=[100.0] * ROUNDS, c2=[101.0] * ROUNDS, c4=[rate] * ROUNDS, stock=[100.0] * ROUNDS)
    extents = {4: pieces}
    found = verdict.verdict([in_pieces(cell, extents.get(cell.contexts or 0, 1)) for cell in made])
    assert found
    assert found.cell.contexts == best


def test_where_all_settings_make_pieces_one_of_them_is_judged() -> None:
    made = cells(c4=[106.0] * ROUNDS, stock=[100.0] * ROUNDS)
    many = {"stock": 1, "parallel": 9}
    found = verdict.verdict([in_pieces(cell, many[cell.variant]) for cell in made])
    assert found
    assert found.cell.contexts == 4


def test_without_a_null_one_is_assumed() -> None:
    assert judged(c4=[104.0] * ROUNDS, stock=[100.0] * ROUNDS).text.endswith("null ±5.0% assumed")
    assert judged(c4=[104.0] * ROUNDS, stock=[100.0] * ROUNDS).kind == "same"
    assert judged(c4=[106.0] * ROUNDS, stock=[100.0] * ROUNDS).kind == "gain"


def test_what_leaves_nothing_to_be_gained_is_said() -> None:
    same = [100.0] * ROUNDS
    found = judged(c4=same, stock=same, bdis=[102.0] * ROUNDS)
    assert found.text.endswith("a device and a flusher for each CPU come to 1.02x, so no flusher is short")
    assert "so no flusher" not in judged(c4=[200.0] * ROUNDS, stock=same, bdis=[102.0] * ROUNDS).text


@pytest.mark.parametrize(("most", "is_said"), [(80.0, True), (90.0, False), (128.0, False)])
def test_writers_that_never_waited_are_named(most: float, is_said: bool) -> None:
    same = [100.0] * ROUNDS
    found = verdict.verdict([
        cell.model_copy(update={"dirty_max_mib": Spread(median=most - 5, min=most - 9, max=most)})
        for cell in cells(c4=same, stock=same, bdis=[102.0] * ROUNDS)
    ])  # fmt: skip
    assert found
    said = (
        "with stock no writer waited for a flusher: dirty pages came to 80 MiB at most, and writers wait "
        "from 96 on"
    )
    assert found.text.endswith(said) == is_said
    assert found.text.endswith("so no flusher is short") == (not is_said)


def explained(
    rates: list[float], busy: tuple[float, float], profiled: dict[str, Bottleneck] | None = None
) -> str:
    """Return what is said of 4 contexts with these rates, of how busy CPUs are with stock and with them."""
    shares = {"stock": busy[0], "parallel": busy[1]}
    found = verdict.verdict([
        cell.model_copy(
            update={
                "machine": "smp",
                "cpu_busy": Spread(median=shares[cell.variant], min=0, max=1),
                "bottleneck": (profiled or {}).get(cell.variant),
            }
        )
        for cell in cells(c4=rates, stock=[100.0] * ROUNDS)
    ])  # fmt: skip
    assert found
    return found.text


def profile(idle: float, lock_tasks: float) -> Bottleneck:
    shares = {"user": 0.1, "kernel": 0.9 - idle, "idle": idle}
    return Bottleneck(shares=shares, functions={}, lock="down in allocate", lock_tasks=lock_tasks)


def test_busy_cpus_are_named_where_nothing_is_gained() -> None:
    same = [100.0] * ROUNDS
    busy = "with stock the CPUs are busy for 99% of the time already"
    assert explained(same, (0.99, 0.99)).endswith(busy)
    assert explained(same, (0.8, 0.97)).endswith(
        "the CPUs are busy for 80% of the time with stock, 97% with 4 contexts"
    )
    assert explained(same, (0.12, 0.38)).endswith(
        "12% of the time with stock, 38% with 4 contexts, so it is not they that are short "
        "(--profile shows what is waited for)"
    )
    # Neither told apart nor judged: it is said all the same, but of what looks like a gain.
    assert explained([80.0, 120] * 3, (0.99, 0.99)).endswith(busy)
    assert explained([90.0], (0.99, 0.99)).endswith(busy)
    assert busy not in explained([100.0, 160] * 3, (0.99, 0.99))
    assert busy not in explained([200.0] * ROUNDS, (0.99, 0.99))


def test_a_profile_tells_what_is_short() -> None:
    same = [100.0] * ROUNDS
    # What runs for some microseconds only is idle time for the kernel, and not for a profile.
    short = {"stock": profile(0.03, 0.0), "parallel": profile(0.02, 0.0)}
    assert explained(same, (0, 0), short).endswith("with stock the CPUs are busy for 97% of the time already")
    locked = {"stock": profile(0.8, 0.0), "parallel": profile(0.7, 3.21)}
    assert explained(same, (0.5, 0.5), locked).endswith(
        "with 4 contexts 3.2 tasks wait for a lock at any time, in down in allocate"
    )
    idle = {"stock": profile(0.8, 0.0), "parallel": profile(0.7, 0.2)}
    assert explained(same, (0.5, 0.5), idle).endswith(
        "the CPUs are busy for 20% of the time with stock, 30% with 4 contexts, so it is not they that are "
        "short, and 0.2 tasks wait for the lock that is wanted most"
    )


def test_costs_have_the_interval_of_the_rounds_that_judge() -> None:
    found = judged(c4=[900, 199, 200, 202], stock=[100, 100, 100, 100])
    expected = paired_interval([(1000 / rate, 10.0) for rate in (199, 200, 202)])
    assert expected
    # Without one context boots are taken to lie as far apart in a cost as in the rate.
    low, high = (f"{bound - 1:+.0%}" for bound in expected.widened(Apart(), 3)[1:])
    wide = f"[{math.exp(-ASSUMED) - 1:+.0%}, {math.exp(ASSUMED) - 1:+.0%}]"
    assert found.costs.startswith(f"mean latency -50% [{low}, {high}], p99 latency as stock {wide}, ")
    assert "no interval" not in found.costs


def with_costs(made: list[Cell], figure: str, by_contexts: dict[int, list[float]]) -> list[Cell]:
    """Return cells of which one cost has these values in its rounds: 0 contexts are stock."""

    def of(cell: Cell) -> list[float]:
        return by_contexts[0 if cell.variant == "stock" else cell.contexts or 0]

    return [
        cell.model_copy(update={"costs_by_round": {**cell.costs_by_round, figure: tuple(of(cell))}})
        for cell in made
    ]


def said_of(name: str, found: verdict.Verdict | None) -> str:
    """Return what is said of one cost."""
    assert found
    [said] = re.findall(rf"(?:^|, ){name} ((?:[^,\[(]+)(?: ?\[.*?\]| ?\(.*?\))?)", found.costs)
    return str(said)


def test_a_cost_that_one_context_has_too_is_as_stock() -> None:
    """In each round stock's own code took 5% more: what lies within that is no cost of the setting."""
    same = [100.0] * 4
    made = cells(c1=same, c4=[200.0] * 4, stock=same)
    base, more = [10.0] * 4, [10.5, 10.4, 10.6, 10.5]
    own, alone = (
        said_of("p99 latency", verdict.verdict(with_costs(made, "latency_p99_us", costs)))
        for costs in ({0: base, 1: more, 4: more}, {0: base, 1: base, 4: more})
    )
    assert own.startswith("as stock [-")
    assert alone.startswith("+5% [+")


def test_one_context_on_all_filesystems_tells_how_far_costs_lie_apart() -> None:
    same, costs = [100.0] * 4, {0: [10.0] * 4, 1: [10.5] * 4, 4: [10.4] * 4}
    made = with_costs(cells(c1=same, c4=[200.0] * 4, stock=same), "latency_p99_us", costs)
    others = with_costs(cells(c1=same, c4=[200.0] * 4, stock=same), "latency_p99_us", costs | {1: [14.0] * 4})
    others = [cell.model_copy(update={"fs": "ext4"}) for cell in others]
    alone = said_of("p99 latency", verdict.verdict(made))
    first, second = (said_of("p99 latency", one) for one in verdict.verdicts([*made, *others]).values())
    # A null that is far off on the one filesystem makes what is known of the other less certain.
    widths = [re.findall(r"\d+", said) for said in (alone, first, second)]
    assert all(said.startswith("as stock [-") for said in (alone, first, second))
    assert int(widths[0][1]) < int(widths[1][1]) < int(widths[2][1])


def test_a_cost_of_nothing_has_no_interval_and_says_so() -> None:
    same = [100.0] * 4
    costs = {contexts: [0.0, 1, 0, 1] for contexts in (0, 1, 4)}
    made = with_costs(cells(c1=same, c4=same, stock=same), "sync_s", costs)
    assert said_of("final sync", verdict.verdict(made)) == "+0% (no interval)"


def by_chance(chance: random.Random, spread: float, rounds: int, more: float) -> verdict.Verdict:
    """Judge a gain whose costs are stock's but by chance; CPU time is multiplied by ``more``."""
    rates = [100.0] * rounds
    made = cells(c1=rates, c4=[200.0] * rounds, stock=rates)
    for figure in COSTS:
        factor = more if figure == "flusher_cpu_s_per_gib" else 1
        lots = {key: [chance.lognormvariate(0, spread) for _ in rates] for key in (0, 1, 4)}
        made = with_costs(made, figure, lots | {4: [factor * one for one in lots[4]]})
    found = verdict.verdict(made)
    assert found
    return found


@pytest.mark.parametrize("rounds", [3, 4, 6])
@pytest.mark.parametrize("spread", [0.01, 0.05, 0.3])
def test_costs_of_stock_against_stock_are_as_stock(spread: float, rounds: int) -> None:
    """All five of a verdict, in 95 of 100."""
    chance = random.Random(7)
    found = [by_chance(chance, spread, rounds, 1) for _ in range(300)]
    assert sum(one.costs.count("as stock") == len(COSTS) for one in found) >= 0.95 * len(found)


@pytest.mark.parametrize(("spread", "rounds"), [(0.01, 4), (0.02, 6), (0.04, 6)])
def test_a_known_fifth_is_found_as_a_cost(spread: float, rounds: int) -> None:
    chance = random.Random(7)
    found = [by_chance(chance, spread, rounds, 1.2).cost_intervals for _ in range(200)]
    ours = [one["flusher_cpu_s_per_gib"] for one in found]
    assert sum(one.low > 1 for one in ours) >= 0.95 * len(ours)
    assert sum(one.low < 1.2 < one.high for one in ours) >= 0.95 * len(ours)


def test_what_is_left_of_a_small_part_is_not_nothing() -> None:
    # The mean latency is 1 / rate.
    assert judged(c4=[29_000.0], stock=[100.0]).costs.startswith("mean latency -99.7%, ")


@pytest.mark.parametrize("rounds", [1, 2])
def test_costs_of_too_few_rounds_have_no_interval_and_say_so(rounds: int) -> None:
    found = judged(c4=[200.0] * rounds, stock=[100.0] * rounds)
    assert found.costs.startswith("mean latency -50%, p99 latency +0%, ")
    assert found.costs.endswith("extents +0% (no intervals, which take three rounds)")


def test_each_group_has_its_own_verdict() -> None:
    other = samples.measured("parallel", 4, 128, [50.0], fs="ext4")
    same = [100.0] * ROUNDS
    found = verdict.verdicts([*cells(c1=same, c4=[200.0] * ROUNDS, stock=same), *results.cells("s", other)])
    assert [(group.fs, one.kind) for group, one in found.items()] == [("xfs", "gain"), ("ext4", "open")]
    assert [one.text for one in found.values()][1] == (
        "not judged: 4 contexts, without a stock to compare with"
    )


# How far parts of a window, and boots, lie apart. Ours share a boot in each round, as in virtual time.
@pytest.mark.parametrize(
    ("part", "boot"), [(0.01, 0), (0.05, 0), (0.15, 0), (0.5, 0), (0.01, 0.02), (0.01, 0.05)]
)
@pytest.mark.parametrize("rounds", [1, 3, 6])
@pytest.mark.parametrize("least", [1, 2])
def test_stock_against_stock_gains_nothing(part: float, boot: float, rounds: int, least: int) -> None:
    """Also where the result has no null, with two contexts at least: how far boots lie apart is assumed."""
    chance = random.Random(7)
    [made] = results.cells("s", samples.measured("stock", 1, 128, [100.0]))

    def cell(variant: str, contexts: int, boots: list[float]) -> Cell:
        rates = tuple(tuple(chance.lognormvariate(middle, part) for _ in range(6)) for middle in boots)
        return made.model_copy(update={"variant": variant, "contexts": contexts, "rates": rates})

    found = []
    for _ in range(400):
        stock, ours = ([chance.gauss(4.6, boot) for _ in range(rounds)] for _ in range(2))
        one = verdict.verdict(
            [
                cell("stock", 1, stock),
                *(cell("parallel", number, ours) for number in (1, 2, 4, 8) if number >= least),
            ]
        )
        assert one
        found.append(one.kind)
    assert sum(kind in ("gain", "loss") for kind in found) <= 0.05 * len(found)
    if (part, boot) == (0.01, 0) and rounds > (1 if least == 1 else 3):
        # That it is as stock is found out, too: not told apart would never be wrong.
        assert found.count("same") >= 0.95 * len(found)


def test_a_known_tenth_is_found() -> None:
    chance = random.Random(7)

    def rates(middle: float) -> list[float]:
        return [chance.gauss(middle, middle / 100) for _ in range(ROUNDS)]

    found = [judged(stock=rates(100), c1=rates(100), c4=rates(110)) for _ in range(100)]
    assert sum(one.kind == "gain" for one in found) >= 95
    assert all(one.interval and one.interval.low < 1.15 for one in found)


def test_a_part_in_which_nothing_was_written_counts() -> None:
    """Writers may pause through a whole part of a window."""
    measured = results.cells("s", [
        *samples.measured("stock", 1, 128, [100.0]),
        *samples.measured("parallel", 1, 128, [100.0]),
        *samples.measured("parallel", 4, 128, [200.0]),
    ])  # fmt: skip
    rates = {"stock": (100.0, 0.0, 110.0, 110.0), "parallel": (200.0, 210.0, 0.0, 190.0)}
    found = verdict.verdict([
        cell.model_copy(update={"rates": (rates["stock" if cell.contexts == 1 else "parallel"],)})
        for cell in measured
    ])  # fmt: skip
    assert found
    assert found.interval
    assert found.interval.ratio == pytest.approx(600 / 320)
    assert (found.null, found.is_null_measured) == (0.0, True)


def test_rates_of_nothing_give_no_interval() -> None:
    found = verdict.verdict([
        cell.model_copy(update={"rates": ((0.0, 0.0),)}) for cell in cells(c1=[100.0], c4=[200.0])
    ])  # fmt: skip
    assert found
    assert found.text == (
        "not judged: 2.00x stock with 4 contexts, no interval, for a rate is 0, null ±5.0% assumed"
    )
