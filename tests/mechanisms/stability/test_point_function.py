"""Point functions: planted keys are found among any number of keys; the promise over small worlds."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom
from tests.mechanisms.stability.test_stability import ADD_REMOVE, REPLACE, edges, worst_delta

import noisette as nz
from noisette.errors import InputError
from noisette.mechanisms.stability.point_function import PointFunction
from noisette.privacy import sensitivity

LABELLED = [(key, label) for key in "ab" for label in (False, True)]


def world(sizes, relation):
    """All samples of two keys with labels, and their neighbours."""
    tables = {t for n in sizes for t in itertools.combinations_with_replacement(LABELLED, n)}
    near = {}
    for t in tables:
        fewer = {t[:i] + t[i + 1 :] for i in range(len(t))}
        found = {tuple(sorted((*rest, v))) for rest in fewer for v in LABELLED} if relation is REPLACE else fewer
        near[t] = found & tables
    return (
        [pair for pair in edges(near) if all(pair)]
        if relation is REPLACE
        else [(a, b) for a in near for b in near[a] if b]
    )


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_every_neighbour_keeps_the_promise_and_some_attain_it(relation):
    pairs = world(range(1, 8) if relation is ADD_REMOVE else [6, 7], relation)
    m = PointFunction(1, "1/20", neighbours=relation)
    assert worst_delta(m.outcomes, pairs, 1.0) == pytest.approx(0.05, rel=1e-9)
    for other in (ADD_REMOVE, REPLACE):
        promise = m.guarantee(sensitivity.histogram(neighbours=other))
        found = worst_delta(m.outcomes, world(range(1, 7), other), float(promise.epsilon))
        assert found <= float(promise.delta) * (1 + 1e-9)


def test_a_key_counted_once_too_often_is_convicted(monkeypatch):
    m = PointFunction(1, "1/20")
    right = PointFunction._stable
    monkeypatch.setattr(PointFunction, "_stable", lambda self, x: (right(self, x)[0] or "a", right(self, x)[1] + 1))
    assert worst_delta(m.outcomes, world(range(1, 7), ADD_REMOVE), 1.0) > 0.06


def planted(n, share, keys, rng):
    """A sample of a huge domain in which one key is True."""
    secret = int(rng.integers(keys))
    drawn = np.where(rng.random(n) < share, secret, rng.integers(keys, size=n))
    return secret, [(int(key), bool(key == secret)) for key in drawn]


@pytest.mark.parametrize("keys", [10**3, 10**18])
def test_a_planted_key_is_found_among_any_number_of_keys(keys):
    m, rng = PointFunction(1, "1e-6"), np.random.default_rng()
    n = m.examples_needed("0.1", level=0.99)
    assert n == 424
    hits = 0
    for _ in range(40):
        secret, sample = planted(n, 0.1, keys, rng)
        hits += m(sample) == secret
    assert hits >= 30  # 99 % each: fewer than 30 of 40 with a probability below 1e-12


@pytest.mark.parametrize("m", [PointFunction(1, "1e-6"), PointFunction("1/2", "1e-4", neighbours=REPLACE)])
@pytest.mark.parametrize("share", [0.02, 0.3])
def test_enough_examples_are_enough(m, share):
    """P(the key is released), exactly: a binomial number of True examples and the chance that each gives."""
    for level in (0.5, 0.9, 0.99):
        n = m.examples_needed(share, level)
        k = np.arange(n + 1)
        changes = k if m.neighbours is ADD_REMOVE else -(-k // 2)
        chance = np.array([m._odds(int(min(c, m.certain)))[0] for c in changes[: 3 * m.certain]])
        tail = float(binom.sf(len(chance) - 1, n, share))
        assert binom.pmf(k[: len(chance)], n, share) @ chance + tail >= level


def test_mistakes_are_few_where_a_point_function_fits():
    m = PointFunction(1, "1e-6")
    for positives in (0, 5, 13, 20, 28, 60):
        sample = [("oak", True)] * positives + [("ash", False)] * 30
        law = m.outcomes(sample)
        few = sum(p for y, p in law.items() if y == "oak" or positives < m.least(0.95))
        assert few >= 0.95
        assert set(law) <= {"oak", None}


def test_a_pure_guarantee_needs_the_number_of_keys():
    m = PointFunction(1, "1e-6")
    pure = [nz.Exponential.calibrated(nz.Pure(1), candidates=k, monotone=True).interval(0.95) for k in (10**3, 10**6)]
    assert pure[1] - pure[0] == pytest.approx(math.log(1000), abs=1.5)
    assert m.least(0.95) < 20


def test_labels_against_a_key_count():
    m = PointFunction(1, "1e-6")
    assert m([("oak", True)] * 90 + [("oak", False)] * 20 + [("ash", True)] * 9) == "oak"
    assert m.outcomes([("oak", True)] * 5 + [("oak", False)] * 9) == {None: 1.0}


@pytest.mark.parametrize(
    "bad", [5, "oak", [("oak",)], [("oak", 1)], [["oak", True]], [(None, True)], [([1], True)], []]
)
def test_bad_examples_are_refused(bad):
    with pytest.raises(InputError):
        PointFunction(1, "1e-6")(bad)


@pytest.mark.parametrize("share", [0, 1, -1, math.nan])
def test_bad_shares_are_refused(share):
    with pytest.raises(InputError):
        PointFunction(1, "1e-6").examples_needed(share)
