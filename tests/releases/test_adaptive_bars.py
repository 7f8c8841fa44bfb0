"""Error bars of the adaptive tree: guaranteed ones hold whatever the data, usual ones on ordinary data."""

import numpy as np
import pytest
from tests.goodness import fewest

from noisette.releases.adaptive import AdaptiveTree
from noisette.releases.adaptive_bars import AdaptiveFit

CELLS = 100  # the last blocks of most levels are shorter
LOW, HIGH = np.triu_indices(CELLS)
ATOM = np.where(np.arange(CELLS) == 37, 3000, 0)  # everything in one cell
TABLES = {
    "empty": np.zeros(CELLS, int),
    "atom": ATOM,
    "dense": np.full(CELLS, 400),
    "mixed": np.repeat([0, 3, 250, 0, 40], 20) + ATOM // 100,
}
RUNS = 600


def truths(x):
    before = np.concatenate([[0], np.cumsum(x)])
    return before[HIGH + 1] - before[LOW]


def held(x, spend, bars, runs=RUNS):
    """How many of the runs each range's bar holds the truth in."""
    made, truth = AdaptiveTree.calibrated(spend, cells=CELLS, gaussian="," in spend), truths(x)
    found = np.zeros(len(truth), int)
    for _ in range(runs):
        low, high = bars(AdaptiveFit.of(made, made.measure(x)))
        found += (low <= truth) & (truth <= high)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("spend", ["1/20", "1,1e-6"])
@pytest.mark.parametrize("name", TABLES)
def test_guaranteed_bars_hold_for_every_range(name, spend):
    found = held(TABLES[name], spend, lambda fit: fit.guaranteed(LOW, HIGH, 0.9))
    assert found.min() >= fewest(RUNS, 0.9)  # fails with p < 5e-9: 5 050 ranges


def test_a_twin_that_forgets_what_stopped_nodes_hide_is_convicted():
    made, truth = AdaptiveTree.calibrated("1/100", cells=CELLS), truths(ATOM // 40)

    def forgetful(fit):
        low, high = fit.guaranteed(LOW, HIGH, 0.9)
        inside = np.zeros(len(LOW), bool)
        for ends in fit._ends(LOW, HIGH):
            inside |= (ends.left_part > 0) | (ends.right_part > 0)
        short = high - fit.made.last(0).interval(0.98)
        return low, np.where(inside, short, high)

    missed = 0
    for _ in range(40):
        low, high = forgetful(AdaptiveFit.of(made, made.measure(ATOM // 40)))
        missed = max(missed, int(((truth < low) | (truth > high)).sum()))
    assert missed > 0


def test_usual_bars_hold_on_ordinary_data():
    x = np.rint(2000 * np.exp(-((np.arange(CELLS) - 40) ** 2) / 300)).astype(int)
    found = held(x, "1", lambda fit: fit.bars(LOW, HIGH, 0.95), runs=100)
    assert found.mean() / 100 > 0.93  # measured .98; the coins are fixed
    narrow = held(
        x,
        "1",
        lambda fit: tuple(fit.ranges(LOW, HIGH) + s * fit.half_widths(LOW, HIGH, 0.95) / 2 for s in (-1, 1)),
        runs=100,
    )
    assert narrow.mean() / 100 < 0.93


def test_bars_know_which_nodes_a_range_cuts():
    made = AdaptiveTree.calibrated("1/100", cells=CELLS)
    fit = AdaptiveFit.of(made, made.measure(np.zeros(CELLS, int)))
    size = made.tree.sizes[0]
    assert fit.levels[0].stopped.all()  # fails with p < 1e-4, with these coins never
    whole, part = ([0], [size - 1]), ([0], [size // 2])
    assert fit.half_widths(*part, 0.95)[0] > fit.half_widths(*whole, 0.95)[0] / 2
    low, high = fit.guaranteed(*whole, 0.95)
    assert high[0] - low[0] < 2 * made.at(made.shares[0]).interval(0.96) + 20
    below, above = fit.guaranteed(*part, 0.95)
    assert (below[0], above[0] > 0) == (0, True)


@pytest.mark.parametrize("cells", [1, 2, 5, 63, 64, 65, 1000])
def test_every_number_of_cells_has_bars(cells):
    made = AdaptiveTree.calibrated("1/2", cells=cells)
    fit = AdaptiveFit.of(made, made.measure(np.arange(cells)))
    low, high = np.zeros(cells, int), np.arange(cells)
    for ends in (fit.bars(low, high, 0.9), fit.guaranteed(low, high, 0.9)):
        assert np.isfinite(ends).all()
        assert (ends[0] <= ends[1]).all()
