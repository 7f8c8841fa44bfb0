"""Keep: the table is the largest that is private, its rounding is safe, and draws follow it."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.goodness import ALPHA, p_value
from tests.tapes import Forced, Script, exp

from noisette.errors import InputError, PrivacyError
from noisette.exact.number import nearest_float
from noisette.mechanisms import Keep, calibrate
from noisette.mechanisms.partitions.keep import _table
from noisette.mechanisms.partitions.per_partition import all_but, share
from noisette.privacy import ZCDP, Approx, Neighbours, Pure, sensitivity
from noisette.privacy.sensitivity import Sensitivity

ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
ONE = 2**128


@pytest.mark.parametrize(("eps", "delta", "half", "certain"), [("0.1", "1e-6", 109, 218), (1, "1e-6", 14, 28)])
def test_published_counts(eps, delta, half, certain):
    m = Keep.calibrated(Approx(eps, delta))
    assert m.chance(half - 1) < 0.5 <= m.chance(half)
    assert (m.least(0.5), m.certain) == (half, certain)
    assert m.chance(certain - 1) < 1 == m.chance(certain)


def faults(table: list[int], eps: Fraction, delta: Fraction) -> int:
    """How many of the four inequalities the table breaks, over all neighbours, in rational arithmetic."""
    grow, room = exp(eps), delta * ONE
    return sum(
        x > grow * y + room
        for p, q in itertools.pairwise(table)
        for x, y in ((p, q), (q, p), (ONE - p, ONE - q), (ONE - q, ONE - p))
    )


@pytest.mark.slow
@settings(max_examples=15)
@given(st.fractions("1/20", 6, max_denominator=100), st.integers(1, 90))
def test_the_rounded_table_is_private_and_no_entry_could_be_larger(eps, bits):
    delta = Fraction(1, 2**bits)
    table = _table(eps, delta)
    assert table[0] == 0
    assert table[-1] == ONE
    assert faults(table, eps, delta) == 0
    for n in {1, len(table) // 3, len(table) // 2, len(table) - 2} - {0}:
        if table[n] < ONE:
            more = [*table[:n], table[n] + 4]
            assert faults(more, eps, delta) > 0, "an entry is smaller than it must be"


def product_delta(m: Keep, counts: tuple[int, ...], eps: float, move: int = 1) -> float:
    """The exact divergence if every one of these groups grows by `move` units."""
    laws = []
    for n in counts:
        laws.append([(float(m.pmf(bit, n)), float(m.pmf(bit, n + move))) for bit in (False, True)])
    pairs = [tuple(math.prod(column) for column in zip(*chosen, strict=True)) for chosen in itertools.product(*laws)]
    factor = math.exp(eps)
    return max(
        math.fsum(max(0.0, p - factor * q) for p, q in pairs), math.fsum(max(0.0, q - factor * p) for p, q in pairs)
    )


def worst_of_two(m: Keep, eps: float) -> float:
    return max(product_delta(m, (a, b), eps) for a in range(m.certain) for b in range(a, m.certain))


@pytest.mark.parametrize(("eps", "delta"), [(1, "1e-3"), (2, "1e-5"), ("1/2", "1/50")])
def test_two_groups_keep_the_promise_and_use_it_up(eps, delta):
    m = Keep.calibrated(Approx(eps, delta), groups=2)
    worst = worst_of_two(m, float(Fraction(eps)))
    assert worst <= float(Fraction(delta)) * (1 + 1e-9)
    assert worst >= float(Fraction(delta)) * (1 - 1e-6)


@pytest.mark.slow
def test_broken_twins_break_the_promise():
    promise = Approx(1, "1e-3")
    m = Keep.calibrated(promise, groups=2)
    for broken in (
        Keep(m.epsilon, promise.delta, groups=2),  # delta not shared
        Keep(promise.epsilon, m.delta0, groups=2),  # epsilon not shared
        replace(m, epsilon=m.epsilon / Fraction(4, 5)),  # noise times 0.8
    ):
        assert worst_of_two(broken, 1.0) > 1e-3 * (1 + 1e-3)
        assert not broken.guarantee() <= promise
    shifted = [0, *_table(m.epsilon, m.delta0)[2:]]  # a threshold off by one
    assert faults(shifted, m.epsilon, m.delta0) > 0


@pytest.mark.parametrize("groups", [1, 2, 10, 40, 100])
@pytest.mark.parametrize("relation", [None, ADD_REMOVE, REPLACE])
def test_calibration_keeps_the_promise(groups, relation):
    promise = Approx(1, "1e-6", neighbours=relation)
    m = Keep.calibrated(promise, groups=groups)
    assert m.groups == groups
    assert m.guarantee(neighbours=relation or ADD_REMOVE) <= promise
    more = replace(m, epsilon=m.epsilon * Fraction(101, 100))
    assert not more.guarantee(neighbours=relation or ADD_REMOVE) <= promise


def test_many_groups_gain_by_optimal_composition():
    promise = Approx(1, "1e-6")
    plain = Keep(Fraction(1, 100), share(promise.delta, 100), groups=100)
    best = Keep.calibrated(promise, groups=100)
    assert plain.guarantee() <= promise
    assert best.least(0.5) < plain.least(0.5) / 2


@pytest.mark.slow
def test_several_units_and_sensitivities():
    m = Keep.calibrated(Approx(1, "1e-4"), 2, groups=2)
    assert m.groups == 2
    assert m.guarantee(2) <= Approx(1, "1e-4")
    worst = max(product_delta(m, (a, b), 1.0, move=2) for a in range(0, m.certain, 3) for b in range(0, m.certain, 3))
    assert 0.9e-4 < worst <= 1e-4
    two = Keep.calibrated(Approx(1, "1e-4", neighbours=REPLACE), sensitivity.histogram(neighbours=REPLACE))
    assert (two.groups, two.epsilon) == (1, Fraction(1, 2))
    assert two.guarantee(Sensitivity(0, 0, 0, 0, neighbours=REPLACE)).epsilon == 0 == m.guarantee(0).epsilon


def test_replacing_costs_less_than_a_group_of_two():
    m = Keep(1, "1e-6")
    replaced, group = m.guarantee(neighbours=REPLACE), m.guarantee().under(REPLACE)
    assert replaced.epsilon == group.epsilon == 2
    assert replaced.delta < 2e-6 < group.delta
    assert m.guarantee(2).delta == pytest.approx(float(group.delta))
    assert product_delta(m, (0,), 2.0, move=2) == pytest.approx(float(m.guarantee(2).delta), rel=1e-9)


@given(st.fractions("1/1000000000", "99/100"), st.integers(1, 3000))
def test_shares_of_delta_round_safely(delta, keys):
    each = share(delta, keys)
    assert all_but(each, keys) <= delta
    assert all_but(each * Fraction(10**9 + 1, 10**9), keys) > delta
    exactly = 1 - (1 - each) ** min(keys, 40)
    assert exactly <= all_but(each, min(keys, 40)) <= exactly + Fraction(1, 2**140)


@pytest.mark.parametrize("m", [Keep(1, "1e-6"), Keep("1/2", "1/50")])
def test_draws_follow_the_table(m):
    counts = np.repeat(np.arange(m.certain + 3), 20_000)
    kept = m(counts)
    assert kept.dtype == bool
    assert kept.shape == counts.shape
    hits = np.bincount(counts[kept], minlength=m.certain + 3)
    for n, hit in enumerate(hits):
        chance = float(m.chance(n))
        assert p_value([20_000 - hit, hit], [1 - chance, chance]) > ALPHA / len(hits)
    half = m.least(0.5)
    single = sum(m(half) for _ in range(4000))
    assert p_value([4000 - single, single], [1 - m.chance(half), m.chance(half)]) > ALPHA
    quiet = replace(m, epsilon=m.epsilon / Fraction(4, 5))
    hit = int(quiet(np.full(20_000, half - 1)).sum())
    assert p_value([20_000 - hit, hit], [1 - m.chance(half - 1), m.chance(half - 1)]) < ALPHA, "a twin passes"


def test_one_draw_compares_128_bits():
    m, n = Keep(1, "1e-6"), 5
    cut = _table(m.epsilon, m.delta0)[n]
    assert m(n, Script(cut - 1)) is True
    assert m(n, Script(cut)) is False
    high, low = divmod(cut, 2**64)
    assert m([n], Script(high, low - 1)).tolist() == [True]
    assert m([n], Script(high, low)).tolist() == [False]
    assert m([n], Script(high - 1)).tolist() == [True]
    assert m([n], Script(high + 1)).tolist() == [False]


@pytest.mark.parametrize("bit", [0, 1])
def test_nobody_is_never_kept_and_many_always_are(bit):
    m = Keep(1, "1e-6")
    assert m([[0, 28], [10**9, 0]], Forced(bit)).tolist() == [[False, True], [True, False]]
    assert m([0, 2**80], Forced(bit)).tolist() == [False, True]
    assert (m(0), m(28)) == (False, True)


def test_interval_and_variance_are_about_units_that_go_unnamed():
    m = Keep("1/2", "1/50")
    t = m.interval(0.9)
    assert m.chance(int(t) + 1) >= 0.9 > m.chance(int(t))
    assert m.variance() == max(n * n * (1 - m.chance(n)) for n in range(m.certain))


class Untouched:
    """Coins that nobody may toss."""

    secure = False

    def __getattr__(self, name):
        raise AssertionError("drawn before the input was checked")


@pytest.mark.parametrize(
    "bad", [-1, [3, -1], 2.0, [1.5], math.nan, [math.nan], "3", None, True, [True], [], [[1], [2, 3]], 1j]
)
def test_bad_counts_are_refused_before_any_draw(bad):
    with pytest.raises(InputError) as error:
        Keep(1, "1e-6")(bad, Untouched())
    assert str(error.value).count(". ") == 0
    assert str(error.value).endswith(".")


@pytest.mark.parametrize(
    "call",
    [
        lambda: Keep(1, 0),
        lambda: Keep(1, 1),
        lambda: Keep(1, -1),
        lambda: Keep(1, math.nan),
        lambda: Keep(0, "1e-6"),
        lambda: Keep("1e-9", "1e-12"),
        lambda: Keep(1, "1e-40"),
        lambda: Keep(1, "1e-6", groups=0),
        lambda: Keep(1, "1e-6", groups=1.5),
        lambda: Keep.calibrated(Approx(1, 0)),
        lambda: Keep.calibrated(Approx(0, "1e-6")),
        lambda: Keep.calibrated(Pure(1)),
        lambda: Keep.calibrated(ZCDP(1)),
        lambda: Keep.calibrated(Approx(1, "1e-6"), groups=0),
        lambda: Keep.calibrated(Approx(1, "1e-6"), 0),
        lambda: Keep.calibrated(Approx(1, "1e-6"), "1/2"),
        lambda: Keep(1, "1e-6").guarantee("1/2"),
        lambda: Keep(1, "1e-6").guarantee(-1),
        lambda: Keep(1, "1e-6").guarantee(neighbours="replace"),
        lambda: Keep(1, "1e-6").guarantee(40),
        lambda: Keep(1, "1e-6").least(1),
    ],
)
def test_bad_parameters_are_refused_in_one_sentence(call):
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value).endswith(".")
    assert ". " not in str(error.value)


def test_relations_do_not_mix():
    with pytest.raises(PrivacyError):
        calibrate(Keep, Approx(1, "1e-6", neighbours=REPLACE), sensitivity=sensitivity.histogram())


def test_a_huge_epsilon_is_no_trouble():
    m = Keep(1000, "1e-6")
    assert m.certain <= 4
    assert nearest_float(m.delta0, up=True) >= m.chance(1)


def test_a_number_that_no_machine_word_holds_is_a_number_too():
    assert Keep(1, "1e-6")(10**30) is True
    assert Keep(1, "1e-6")([10**30, 0]).tolist() == [True, False]
