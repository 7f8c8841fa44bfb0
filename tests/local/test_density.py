"""The square wave: its window, EM with smoothing, and what is read from the distribution."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.contracts.test_local import Twin, privacy_faults

from noisette import local
from noisette.errors import InputError
from noisette.privacy import Pure

PEOPLE = np.linspace(0, 1, 20_000) ** 0.5  # the share below x is x^2


@pytest.fixture(scope="module")
def survey():
    return local.SquareWave(2, buckets=128)


def test_the_window_has_the_width_of_the_paper():
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        e = math.exp(epsilon)
        b = (epsilon * e - e + 1) / (2 * e * (e - 1 - epsilon))
        assert local.SquareWave(epsilon, buckets=4096).window.width == pytest.approx(2 * b * 4096, abs=0.51)
    assert local.SquareWave("1/1000000", buckets=64).window.width == 64


def test_the_distribution_is_found(survey):
    found = survey.estimate(survey.clients(PEOPLE))
    assert found.shares.sum() == pytest.approx(1)
    assert (found.shares >= 0).all()
    grid = np.linspace(0, 1, 101)
    assert np.abs(found.below(grid) - grid**2).mean() < 0.02  # the coins are fixed; 0.005 is usual
    assert np.abs(found.quantile(np.array([0.1, 0.5, 0.9])) - np.sqrt([0.1, 0.5, 0.9])).max() < 0.06
    assert found.density @ np.diff(found.edges) == pytest.approx(1)


@pytest.mark.slow
def test_em_gives_the_exact_distribution_from_exact_counts(survey):
    """With so many reports that counts are their expectations, smoothing alone keeps the estimate from the truth."""
    true = np.diff(np.linspace(0, 1, 129) ** 2)
    counts = np.rint(1e9 * survey.window.mixed(true)).astype(np.int64)
    found = survey.estimate(local.Aggregate(survey, counts, int(counts.sum())))
    assert np.abs(np.cumsum(found.shares) - np.cumsum(true)).max() < 0.01
    blunt = replace(survey, epsilon=Fraction(1))  # a collector who takes another law finds another distribution
    again = blunt.estimate(local.Aggregate(blunt, np.resize(counts, blunt.cells), int(counts.sum())))
    assert np.abs(np.cumsum(again.shares) - np.cumsum(true)).max() > 0.03


@pytest.mark.slow
def test_simulated_bars_are_as_wide_as_the_errors(survey):
    surveys = [survey.estimate(survey.clients(PEOPLE)) for _ in range(12)]
    spread = np.std([found.quantile(0.5) for found in surveys])
    low, high = surveys[0].interval(0.95, rounds=12)
    assert 1.5 * spread < high - low < 10 * spread
    assert surveys[0].variance(rounds=3).shape == (128,)


def test_a_bolder_claim_is_convicted():
    protocol = local.SquareWave(1, buckets=6)
    assert privacy_faults(Twin(protocol, guarantee=lambda: Pure("0.999"))) == ["not private"]


def test_quantiles_skip_empty_buckets():
    protocol = local.SquareWave(1, buckets=4)
    aggregate = local.Aggregate(protocol, np.ones(protocol.cells, np.int64), protocol.cells)
    found = local.Distribution(protocol, np.array([0.5, 0.0, 0.0, 0.5]), aggregate)
    assert found.quantile(0.5) == 0.25
    assert found.quantile(1.0) == 1.0


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: local.SquareWave(1, low=2, high=1), "low must be below high"),
        (lambda: local.SquareWave(1, buckets=1), "buckets must be a whole number, at least 2"),
        (lambda: local.SquareWave(1, buckets=1 << 17), "at most 65,536"),
        (lambda: local.SquareWave(1).client(1.01), "outside the declared bounds"),
        (lambda: local.SquareWave(1).estimate([3] * 10).quantile(1.5), "share must lie between 0 and 1"),
    ],
)
def test_bad_input_is_refused(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()
