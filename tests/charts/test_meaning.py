"""What a guarantee means, drawn."""

import itertools
import math

import numpy as np
import pytest

import noisette as nz
from noisette.charts import odds, tradeoff
from noisette.charts.meaning import _name
from noisette.errors import InputError
from noisette.privacy.meaning import tradeoff_curve


def bands(chart):
    """The values of each band, as arrays of x, low, high."""
    layers = [layer for layer in chart.spec["layer"] if layer.get("mark", {}).get("type") == "area"]
    return [np.array([[row[f] for f in ("x", "low", "high")] for row in layer["data"]["values"]]).T for layer in layers]


def test_tradeoff_names_its_lines():
    assert tradeoff(2, nz.Approx("0.5", "1e-6"), nz.ZCDP("0.01")).texts == [
        "pure guessing",
        "ρ = 0.01 (zCDP)",  # the strongest first
        "ε = 0.5, δ = 1e-6",
        "ε = 2",
        "below a line: impossible\nfor any attacker",
    ]
    assert tradeoff(1).texts == ["pure guessing", "ε = 1", "impossible for\nany attacker"]
    assert tradeoff(1, 2, labels=["one", "two"]).texts[1:3] == ["one", "two"]
    assert _name(nz.Approx(1, "1e-9") * 2 + nz.ZCDP("0.1")) == "2 releases and 0.1-zCDP together"


def test_tradeoff_draws_the_curve_with_its_corner():
    [(x, low, high)] = bands(tradeoff(1))
    assert np.array_equal(high, tradeoff_curve(1, x))
    assert not low.any()
    assert np.min(np.abs(x - 1 / (1 + math.e))) < 1e-12


def test_odds_draws_a_band_for_each_epsilon():
    chart = odds(1, "0.5", mark="0.1")
    assert chart.texts == ["ε = 0.5", "ε = 1", "15 %", "23 %"]
    for (x, low, high), epsilon in zip(bands(chart), (1, 0.5), strict=True):
        half = np.abs(x - 0.5) < 1e-12
        edges = [1 / (1 + math.exp(epsilon)), 1 / (1 + math.exp(-epsilon))]
        assert [float(low[half][0]), float(high[half][0])] == pytest.approx(edges)


def test_many_and_near_lines_can_be_drawn():
    assert len(odds(*(f"{1 + i / 10}" for i in range(9))).texts) == 9
    assert len(tradeoff(*(f"{1 + i / 10}" for i in range(9))).texts) == 11
    heights = [row["y"] for row in tradeoff(1, 1, 1).values if row.get("text") == "ε = 1"]
    assert all(a - b > 0.045 for a, b in itertools.pairwise(heights))


@pytest.mark.parametrize("call", [lambda: tradeoff(), lambda: tradeoff(1, labels=["a", "b"]), lambda: odds()])
def test_nothing_to_draw(call):
    with pytest.raises(InputError, match="at least one"):
        call()
