"""Parallel composition, against enumeration: the largest under add/remove, the two largest under replace."""

import itertools
import math
from fractions import Fraction

import pytest

import noisette as nz
from noisette.errors import InputError, PrivacyError
from noisette.privacy import Neighbours
from noisette.privacy.guarantee import Losses, once
from noisette.privacy.parallel import parallel
from noisette.privacy.pld.loss import LatticeLaplace, Normal, Response

AR, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
ODDS = (Fraction(3), Fraction(2), Fraction(5, 4))  # each part tells whether anybody is in it, with these odds of truth
OUTPUTS = list(itertools.product([False, True], repeat=3))


def law(people: tuple[int, ...]) -> list[Fraction]:
    """The chance of each output, where every person is in one of three parts."""
    occupied = [part in people for part in range(3)]
    return [
        math.prod((o if told == truth else 1) / (1 + o) for o, told, truth in zip(ODDS, output, occupied, strict=True))
        for output in OUTPUTS
    ]


def worst(neighbouring: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> Fraction:
    return max(p / q for x, y in neighbouring for p, q in zip(law(x), law(y), strict=True))


def tables() -> list[tuple[int, ...]]:
    return [people for n in range(4) for people in itertools.product(range(3), repeat=n)]


def test_enumeration_agrees():
    """Probabilities of neighbours differ by a factor of at most 3 if one is added, and of 6 if one is replaced."""
    added = [(x, (*x, part)) for x in tables() for part in range(3)]
    replaced = [(x, (*x[:-1], part)) for x in tables() if x for part in range(3)]
    assert worst(added + [(y, x) for x, y in added]) == 3
    assert worst(replaced) == 6
    parts = [nz.Pure(Fraction(math.log(o))) for o in ODDS]
    assert parallel(*parts, neighbours=AR).epsilon == pytest.approx(math.log(3))
    assert parallel(*parts, neighbours=REPLACE).epsilon == pytest.approx(math.log(6))


@pytest.mark.parametrize(
    ("parts", "largest", "two_largest"),
    [
        ([nz.Pure(1)], nz.Pure(1), nz.Pure(1)),
        ([nz.Pure(1), nz.Pure(1), nz.Pure(1)], nz.Pure(1), nz.Pure(2)),
        ([nz.Pure("0.2"), nz.Pure("0.7"), nz.Pure("0.5")], nz.Pure("0.7"), nz.Pure("1.2")),
        ([nz.ZCDP("0.1"), nz.ZCDP("0.3")], nz.ZCDP("0.3"), nz.ZCDP("0.4")),
        (
            [nz.Approx(1, "1e-6"), nz.Approx("0.5", "1e-5"), nz.Approx("0.1", "1e-7")],
            nz.Approx(1, "1e-5"),
            nz.Approx("1.5", "1.1e-5"),
        ),
        ([nz.Approx(1, "1e-6"), nz.Approx("0.5", 0)], nz.Approx(1, "1e-6"), nz.Approx("1.5", "1e-6")),
    ],
)
def test_maximum_and_the_two_largest(parts, largest, two_largest):
    assert parallel(*parts, neighbours=AR) == largest.under(AR)
    assert parallel(*parts, neighbours=REPLACE) == two_largest.under(REPLACE)
    assert parallel(*reversed(parts), neighbours=REPLACE) == two_largest.under(REPLACE)


# Ledgers


def test_equal_parts_keep_what_they_know():
    one = nz.Gaussian(10).guarantee(1).under(AR)
    cells = parallel(*[one] * 30)
    assert (cells * 20).epsilon_at("1e-6") == (one * 20).epsilon_at("1e-6")
    moved = nz.Gaussian(10).guarantee(1).under(REPLACE)
    assert parallel(*[moved] * 30).epsilon_at("1e-6") == (moved * 2).epsilon_at("1e-6")


@pytest.mark.parametrize(
    ("small", "large"),
    [
        (
            nz.Pure("0.5", losses=once(LatticeLaplace(Fraction(1, 2), 9))),
            nz.Pure(1, losses=once(LatticeLaplace(Fraction(1), 9))),
        ),
        (nz.ZCDP("0.005", losses=once(Normal(Fraction(1, 10)))), nz.ZCDP("0.02", losses=once(Normal(Fraction(1, 5))))),
        (nz.Pure("0.5") * 2, nz.Pure("0.5") * 3),
        (nz.Pure("0.5") * 2, nz.Pure("0.5") * 2 + nz.Pure("0.1")),
    ],
)
def test_the_larger_of_a_kind_keeps_what_it_knows(small, large):
    assert parallel(small, large, neighbours=AR).losses == large.losses
    assert parallel(large, small, small, neighbours=REPLACE).losses == (large + small).losses
    for e in (0, Fraction(1, 5), Fraction(9, 10)):
        assert small.delta_at(e) <= large.delta_at(e)


def test_a_ledger_that_covers_too_little_is_left_behind():
    """Fine Laplace noise at 1 hides more than randomized response at 0.99 does, near epsilon 0."""
    laplace = nz.Pure(1, losses=once(LatticeLaplace(Fraction(1), 1000)))
    response = nz.Pure("0.99", losses=once(Response(Fraction(99, 100))))
    assert laplace.delta_at(0) < response.delta_at(0)
    both = parallel(laplace, response, neighbours=AR)
    assert both == nz.Pure(1, neighbours=AR)
    assert both.losses is None
    assert both.delta_at(0) >= response.delta_at(0)
    assert parallel(laplace, nz.Pure("0.99"), neighbours=AR).delta_at(0) >= response.delta_at(0)


@pytest.mark.parametrize("e", [0, Fraction(1, 4), Fraction(1, 2), Fraction(9, 10)])
def test_what_is_kept_dominates_every_part(e):
    parts = [
        nz.Pure("0.9", losses=once(LatticeLaplace(Fraction(9, 10), 4))),
        nz.Pure(1, losses=once(LatticeLaplace(Fraction(1), 8))),
        nz.Pure("0.6") + nz.Pure("0.3"),
        nz.Pure("0.9", losses=Losses((), Fraction(1, 9))),
    ]
    for some in itertools.combinations(parts, 2):
        assert parallel(*some, neighbours=AR).delta_at(e) >= max(part.delta_at(e) for part in some)


# Refusals


@pytest.mark.parametrize(
    "parts",
    [
        [nz.Pure(1), nz.ZCDP(1)],
        [nz.Pure(1), nz.Approx(1, "1e-6")],
        [nz.Approx(1, "1e-6") + nz.ZCDP(1)],
        [nz.Pure(1), 1],
    ],
)
def test_kinds_that_have_no_order_are_refused(parts):
    with pytest.raises(InputError, match="all be Pure, all Approx or all ZCDP"):
        parallel(*parts, neighbours=AR)


def test_the_relation_must_be_known_and_one():
    with pytest.raises(InputError, match="neighbours="):
        parallel(nz.Pure(1), nz.Pure(1))
    with pytest.raises(InputError):
        parallel(neighbours=AR)
    with pytest.raises(PrivacyError, match="different relations"):
        parallel(nz.Pure(1, neighbours=AR), nz.Pure(1, neighbours=REPLACE))
    with pytest.raises(PrivacyError, match="different relations"):
        parallel(nz.Pure(1, neighbours=AR), neighbours=REPLACE)
    assert parallel(nz.Pure(1, neighbours=AR), nz.Pure(2)) == nz.Pure(2, neighbours=AR)
