from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom
from tests.goodness import ALPHA

from noisette.attacks import SMOKERS, Answerer, differencing, exact, guessing_ceiling
from noisette.errors import InputError
from noisette.mechanisms import Geometric, Laplace
from noisette.privacy import Pure

NOISE = Geometric(12)


def private(table=SMOKERS, person="Bob", mechanism=NOISE):
    return differencing(table, person, Answerer(mechanism, 1, sensitivity=6))


def plausible(hits, runs, chance):
    return min(binom.cdf(hits, runs, chance), binom.sf(hits - 1, runs, chance)) > ALPHA / 2


def test_the_table_is_the_textbooks():
    counts = Counter(SMOKERS.values())
    assert [counts[value] for value in range(6)] == [10, 2, 4, 13, 44, 35]
    assert [SMOKERS[name] for name in ("Alice", "Bob", "Charles", "Diana", "Zoe")] == [3, 5, 1, 0, 4]


def test_exact_answers_reveal_everyone():
    attacks = [differencing(SMOKERS, person, exact) for person in SMOKERS]
    assert all(attack.revealed and attack.error == 0 for attack in attacks)
    assert [attack.estimate for attack in attacks] == list(SMOKERS.values())
    assert attacks[1].everyone == (108, 400)
    assert attacks[1].others == (107, 395)
    assert attacks[1].spent is None


@pytest.mark.slow
def test_within_the_budget_the_error_is_the_noises():
    """The error is a difference of two draws, whose law is the pmf convolved with itself."""
    runs, z = 400, np.arange(-600, 601)
    law = np.convolve(NOISE.pmf(z, 0), NOISE.pmf(z, 0))[600:1801]
    attacks = [private() for _ in range(runs)]
    assert all(attack.spent == Pure(1) for attack in attacks)
    assert plausible(sum(attack.revealed for attack in attacks), runs, law[z == 0].item())
    for reach in (5, 20, 50):
        within = sum(attack.error <= reach for attack in attacks)
        assert plausible(within, runs, law[np.abs(z) <= reach].sum())


@pytest.mark.slow
def test_within_the_budget_guessing_stays_below_the_ceiling():
    """A value that is uniform among 0 to 5, guessed as the nearest of these; exact answers break the ceiling."""
    runs, generator = 400, np.random.default_rng()
    ceiling = guessing_ceiling(Fraction(5, 12), choices=6)
    hits = Counter()
    for value in generator.integers(0, 6, runs):
        table = {**SMOKERS, "Bob": int(value)}
        for name, attack in (("private", private(table)), ("exact", differencing(table, "Bob", exact))):
            hits[name] += np.clip(round(attack.estimate), 0, 5) == value
    assert binom.sf(hits["private"] - 1, runs, ceiling) > ALPHA
    assert hits["exact"] == runs
    assert binom.sf(runs - 1, runs, ceiling) < ALPHA


def test_real_noise_too():
    assert private(mechanism=Laplace(12, grid="1/64")).estimate is None  # 6 + 1/64 over 12, twice, is more than 1
    attack = private(mechanism=Laplace(13))
    assert attack.error < 13 * 60
    assert attack.spent <= Pure(1)


@pytest.mark.parametrize(("budget", "answers"), [("1/2", 1), ("1/3", 0)])
def test_a_refused_answer_ends_it(budget, answers):
    attack = differencing(SMOKERS, "Bob", Answerer(NOISE, budget, sensitivity=6))
    assert [attack.everyone, attack.others].count(None) == 2 - answers
    assert attack.estimate is attack.error is None
    assert not attack.revealed
    assert attack.spent == Pure("1/2") * answers
    assert "refused" in str(attack)


def test_sentences():
    assert str(differencing({"A": 2, "B": 3}, "A", exact)) == "A's value is 2, the attack says 2: revealed."
    shifted = differencing({"A": 2, "B": 3}, "A", lambda x: x + np.array([0, x[0]]))
    assert str(shifted) == "A's value is 2, the attack says 3: off by 1."


@pytest.mark.parametrize(
    ("table", "person", "message"),
    [
        (SMOKERS, "Eve", "name in a table"),
        ({"Bob": 5}, "Bob", "at least two"),
        ({"Bob": 5.5, "Eve": 1}, "Bob", "whole number"),
        ({"Bob": -1, "Eve": 1}, "Bob", "whole number"),
    ],
)
def test_refusals(table, person, message):
    with pytest.raises(InputError, match=message):
        differencing(table, person, exact)
