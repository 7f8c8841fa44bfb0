"""Which mechanism errs least on a median: against laws that are written out, and by simulation."""

import math
import statistics

import pytest
from tests.goodness import fewest, most

from noisette import charts
from noisette.accuracy.medians import compare_medians
from noisette.errors import InputError
from noisette.mechanisms.smooth.inverse_sensitivity import InverseSensitivity
from noisette.mechanisms.smooth.order import Order
from noisette.mechanisms.smooth.smooth import Smooth
from noisette.privacy import ZCDP, Neighbours, Pure


def normal(p):
    return 500 + 80 * statistics.NormalDist().inv_cdf(p)


def test_the_table_says_who_wins_where():
    table = compare_medians(normal, low=0, high=1000, sizes=[10, 300])
    assert table.best(10) == "smooth, Cauchy"
    assert table.best(300) == "inverse sensitivity"
    assert all(row["global sensitivity"] == 1000 for row in table.errors.values())
    assert "records" in str(table)
    assert "<table" in table._repr_html_()
    assert set(charts.curves(table.curves, x="records", y="error").texts) == set(table.errors[10])


def errors_are_of(m, x, error, level=0.95, runs=1000):
    """The error is the least that releases keep at the level: by their law, and by releases that follow it."""
    law = m.outcomes(x)
    share, less = (math.fsum(p for y, p in law.items() if abs(y - 500) <= reach) for reach in (error, error - 1))
    assert less < level <= share
    held = sum(abs(m(x) - 500) <= error for _ in range(runs))
    assert fewest(runs, share) <= held <= most(runs, share)  # fails with p < 1e-12 on either side


@pytest.mark.slow
def test_errors_are_those_of_releases():
    table = compare_medians(normal, low=0, high=1000, sizes=[101])
    statistic = Order("1/2", 0, 1000, neighbours=Neighbours.REPLACE)
    x = [round(normal((i + 0.5) / 101)) for i in range(101)]
    m = InverseSensitivity.calibrated(Pure(1), statistic=statistic)
    errors_are_of(m, x, table.errors[101]["inverse sensitivity"])


@pytest.mark.slow
def test_a_rho_compares_what_keeps_it():
    table = compare_medians(normal, low=0, high=1000, sizes=[10, 101], rho="1/2")
    row = table.errors[101]
    assert list(row) == [
        "inverse sensitivity", "Quantile", "smooth, log-normal", "smooth, Student", "smooth, Cauchy",
        "global sensitivity",
    ]  # fmt: skip
    assert "rho = 1/2" in str(table)
    assert "delta" not in str(table)
    pure = compare_medians(normal, low=0, high=1000, sizes=[101]).errors[101]
    assert row["smooth, Student"] == pure["smooth, Student"]  # rho = epsilon^2/2
    assert row["inverse sensitivity"] < 0.6 * pure["inverse sensitivity"]  # rho = epsilon^2/8
    assert row["smooth, log-normal"] < 0.7 * row["smooth, Student"]


@pytest.mark.slow
def test_errors_of_log_normal_noise_are_those_of_releases():
    table = compare_medians(normal, low=0, high=1000, sizes=[101], rho="1/8")
    x = [round(normal((i + 0.5) / 101)) for i in range(101)]
    statistic = Order("1/2", 0, 1000, neighbours=Neighbours.REPLACE)
    m = Smooth.calibrated(ZCDP("1/8"), statistic=statistic, like=x)
    errors_are_of(m, x, table.errors[101]["smooth, log-normal"])


def test_bad_levels_and_sizes_are_refused():
    for options in ({"level": 1}, {"sizes": [0]}, {"epsilon": 0}, {"delta": 0}, {"rho": 0}):
        with pytest.raises(InputError):
            compare_medians(normal, **{"low": 0, "high": 1000, "sizes": [3], **options})
