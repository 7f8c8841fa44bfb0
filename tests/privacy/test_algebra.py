"""The laws of guarantees: sums commute and associate, multiples are sums, implication is an order."""

from fractions import Fraction
from functools import reduce
from operator import add

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import noisette as nz
from noisette.privacy.guarantee import losses_of
from noisette.privacy.neighbours import Neighbours

ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
NOTHING = nz.Pure(0)
epsilons = st.fractions(0, 5, max_denominator=100)
deltas = st.fractions("1/1000000", "1/1000", max_denominator=10**6)
relations = st.sampled_from([None, ADD_REMOVE])
pures = st.builds(nz.Pure, epsilons, neighbours=relations)
approxes = st.builds(nz.Approx, epsilons, deltas, neighbours=relations)
zcdps = st.builds(nz.ZCDP, epsilons, neighbours=relations)
promises = st.one_of(pures, approxes, zcdps)
MECHANISMS = [
    nz.Geometric(3).guarantee(1),
    nz.Laplace(2, grid="1/4").guarantee(1),
    nz.Gaussian(4).guarantee(1),
    nz.Gaussian(5, grid=1).guarantee(1),
    nz.Exponential.calibrated(nz.Pure("1/2"), candidates=4).guarantee(1),
    nz.Profile.gaussian("1/3"),
]
known = st.sampled_from([guarantee.restated(None) for guarantee in MECHANISMS])
guarantees = st.one_of(promises, known)


def meaning(guarantee):
    """Everything a guarantee is: its kind, statement, relation and losses."""
    return type(guarantee), guarantee.numbers, guarantee.neighbours, losses_of(guarantee)


@pytest.mark.slow
@given(guarantees, guarantees)
def test_sums_commute(a, b):
    assert meaning(a + b) == meaning(b + a)


@pytest.mark.slow
@given(guarantees, guarantees, guarantees)
def test_the_losses_of_sums_associate(a, b, c):
    """Statements associate within a kind; across kinds a sum of epsilons may become a rho early or late."""
    left, right = (a + b) + c, a + (b + c)
    assert losses_of(left) == losses_of(right)
    assert left.neighbours is right.neighbours
    if len({type(g) for g in (a, b, c)} - {nz.Pure, nz.Approx}) == 0 or len({type(g) for g in (a, b, c)}) == 1:
        assert meaning(left) == meaning(right)


@settings(max_examples=10)
@given(st.lists(known, min_size=3, max_size=3))
def test_tight_numbers_do_not_depend_on_the_order(gs):
    a, b, c = gs
    sums = [(a + b) + c, a + (b + c), (c + a) + b]
    assert len({g.delta_at("1/2") for g in sums if isinstance(g, nz.Profile)}) <= 1
    for g in sums:
        assert g.epsilon_at("1e-6") == pytest.approx(sums[0].epsilon_at("1e-6"), rel=1e-9)


@given(guarantees, st.integers(1, 8))
def test_multiples_are_repeated_sums(a, k):
    repeated = reduce(add, [a] * k)
    assert losses_of(a * k) == losses_of(repeated)
    if k > 1 or not isinstance(a, nz.Profile):  # a profile may have a rho that its sums state
        assert meaning(a * k) == meaning(k * a) == meaning(repeated)


@given(guarantees, st.integers(0, 5), st.integers(0, 5))
def test_multiples_distribute(a, k, m):
    assert losses_of(a * k + a * m) == losses_of(a * (k + m))
    assert losses_of((a * k) * m) == losses_of(a * (k * m))


@given(promises)
def test_nothing_is_neutral(a):
    assert a + NOTHING == a
    assert losses_of(a + NOTHING) == losses_of(a)
    assert a >= NOTHING
    assert (a <= NOTHING) == (a.size == a.delta == 0)


@given(promises)
def test_implication_is_reflexive(a):
    assert a <= a


SAMPLES = [
    *(nz.Pure(e) for e in (0, "1/2", 1, 2)),
    *(nz.Approx(e, d) for e in (0, "1/2", 1, 2) for d in (0, "1e-9", "1e-3")),
    *(nz.ZCDP(rho) for rho in (0, "1/8", "1/2", 2)),
]


def test_implication_is_transitive():
    """On the right of <= only the statement counts, so a guarantee with losses stands first in a chain."""
    implied = {a: {b for b in SAMPLES if a <= b} for a in SAMPLES}
    for a in [*SAMPLES, *MECHANISMS]:
        weaker = {b for b in SAMPLES if a <= b}
        for b in weaker:
            assert implied[b] <= weaker
    assert 50 < sum(map(len, implied.values())) < len(SAMPLES) ** 2 - 50


@given(epsilons)
def test_a_delta_of_zero_is_pure(epsilon):
    a, pure = nz.Approx(epsilon, 0), nz.Pure(epsilon)
    assert a <= pure <= a
    assert a + NOTHING == pure
    assert a <= nz.ZCDP(epsilon**2 / 2)
    assert a + nz.ZCDP(1) == pure + nz.ZCDP(1)


@given(st.one_of(st.tuples(pures, pures), st.tuples(zcdps, zcdps)))
def test_each_part_implies_the_sum(parts):
    a, b = parts
    assert a <= a + b
    assert b <= a + b


@given(promises, st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_shares_add_up_to_the_whole(promise, weights):
    shares = [promise.share(Fraction(weight, sum(weights))) for weight in weights]
    total = reduce(add, shares)
    assert total == promise.restated(None)
    assert sum(share.size for share in shares) == promise.size
    assert all(share <= promise for share in shares)


@pytest.mark.slow
@given(promises, st.fractions("1/10", 1), st.fractions("1/10", 1))
def test_a_share_of_a_share_is_a_share(promise, p, q):
    assert promise.share(p).share(q) == promise.share(p * q)


@given(st.one_of(pures, zcdps), st.integers(1, 5), st.integers(1, 5))
def test_groups_of_groups_are_groups(promise, k, m):
    assert promise.group(k).group(m) == promise.group(k * m)
    assert promise <= promise.group(k)


@pytest.mark.slow
@given(promises, promises)
def test_sums_are_restated_part_by_part(a, b):
    assert a.restated(REPLACE) + b.restated(REPLACE) == (a + b).restated(REPLACE)


@pytest.mark.slow
@given(epsilons, epsilons, deltas, deltas)
def test_delta_falls_in_epsilon_and_epsilon_falls_in_delta(e, f, d, g):
    promise = nz.Approx(1, "1e-4")
    assert (promise.delta_at(e) <= promise.delta_at(f)) or e < f
    assert (promise.epsilon_at(d) <= promise.epsilon_at(g)) or d < g
