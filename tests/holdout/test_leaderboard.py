"""Leaderboards: private by the sparse vector technique, or with a bound and no epsilon."""

import copy
import math

import numpy as np
import pytest
from tests.goodness import most

from noisette.errors import BudgetError, InputError, PrivacyError
from noisette.holdout import Ladder, Leaderboard, auc, squared_error
from noisette.privacy import Pure

N = 1000
Y = np.arange(N) % 2


def right(share):
    """Predictions that are right for this share of the labels."""
    return np.where(np.arange(N) < share * N, Y, 1 - Y)


def board(**options):
    return Leaderboard(Y, **({"budget": 3, "spend": 20, "step": "0.05", "start": "0.5"} | options))


def test_only_who_beats_the_best_by_a_step_leads():
    """Noise has a scale of 1/600: an answer is wrong with p < 1e-12 at 0.05 from the threshold."""
    played = board()
    found = [played.submit(str(share), right(share)) for share in (0.4, 0.6, 0.601, 0.8, 0.7)]
    assert [each.leads for each in found] == [False, True, False, True, False]
    assert found[1].low <= 0.6 <= found[1].high
    assert [each.left for each in found] == [3, 2, 2, 1, 1]
    assert [each.name for each in played.standings] == ["0.6", "0.8"]
    assert repr(found[0]) == "0.4 does not beat 0.5, 3 left"
    assert played.guarantee <= Pure(20, neighbours=played.guarantee.neighbours)
    assert played.submit("best", right(1)).leads
    with pytest.raises(BudgetError, match="locked"):
        played.submit("better", right(1))
    assert "0 of 3 leaders left" in repr(played)


def test_who_submits_chance_does_not_climb():
    """Each of 200 coin flips is 0.15 or ten standard deviations from leading: p < 1e-12."""
    rng, played = np.random.default_rng(3), board(step="0.1")
    for i in range(200):
        assert not played.submit(str(i), rng.integers(0, 2, N)).leads


def test_losses_count_as_one_minus_themselves():
    played = Leaderboard(Y / 1, budget=1, spend=20, step="0.05", start="0.5", loss=squared_error(0, 2))
    assert played.submit("exact", Y).score == pytest.approx(1, abs=0.1)


def test_odd_predictions_count_as_nothing_and_nothing_raises():
    played = board(loss=squared_error(0, 1))
    assert not played.submit("nan", np.full(N, np.nan)).leads
    assert not played.submit("texts", ["canary"] * N).leads


@pytest.mark.parametrize(
    "predictions", [[1], np.ones((N, 2)), 3, [[1], [2, 3]]], ids=["short", "wide", "one", "ragged"]
)
def test_submissions_have_one_prediction_for_each_record(predictions):
    with pytest.raises(InputError, match="one prediction for each of the 1,000 records"):
        board().submit("bad", predictions)


BAD = {
    "no labels": lambda: Leaderboard([]),
    "B = 0": lambda: board(budget=0),
    "a start of 1": lambda: board(start=1),
    "a step of 0": lambda: board(step=0),
    "the area under the ROC curve": lambda: board(loss=auc(least=3)),
    "probabilities": lambda: board(loss="brier"),
    "a ladder with a step of 0": lambda: Ladder(Y, step=0),
    "a ladder with a step of 2": lambda: Ladder(Y, step=2),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_sentence(name):
    with pytest.raises(InputError) as caught:
        BAD[name]()
    assert str(caught.value).endswith(".")
    assert str(caught.value).count(". ") == 0


def test_it_cannot_be_copied():
    with pytest.raises(PrivacyError, match="cannot be copied"):
        copy.deepcopy(board())


# The ladder


def test_the_ladder_has_a_bound_and_no_epsilon():
    ladder = Ladder(Y, step="0.05")
    found = [ladder.submit(str(share), right(share)) for share in (0.6, 0.62, 0.66, 0.5)]
    assert [each.leads for each in found] == [True, False, True, False]
    assert [each.score for each in found] == pytest.approx([0.6, 0.6, 0.65, 0.65])
    assert repr(ladder) == "<ladder of 1,000 labels: best 0.65, no epsilon>"
    with pytest.raises(PrivacyError, match="no epsilon"):
        _ = ladder.guarantee


def test_the_ladder_cannot_be_charged():
    from noisette.ledger import Memory

    ledger = Memory(Pure(1))
    with pytest.raises(PrivacyError, match="no epsilon"):
        ledger.charge("a ladder", Ladder(Y, step="0.05").guarantee, [])
    assert ledger.entries == ()


def test_the_bound_is_below_that_of_the_paper():
    """Blum and Hardt: 2 exp(-2 e^2 n + (1/step + 2) log2(4 t/step)) or so; ours counts transcripts exactly."""
    for t, step in ((10, 0.1), (1000, 0.05), (10**6, 0.02)):
        n, beta = N, 0.05
        papers = math.sqrt(((1 / step + 2) * math.log(4 * t / step) + 1 - math.log(beta)) / (2 * n)) + step
        assert Ladder(Y, step=str(step)).bound(t) <= papers


@pytest.mark.slow
def test_the_bound_holds_where_a_plain_leaderboard_overfits():
    """The boosting attack: the majority of all submissions that did better than chance. Truth is 0.5."""
    rng, trials, missed, naive = np.random.default_rng(4), 20, 0, 0.0
    for _ in range(trials):
        truth = rng.integers(0, 2, N)
        ladder = Ladder(truth, step="0.02")
        guesses = rng.integers(0, 2, (400, N))
        plain = guesses[(guesses == truth).mean(axis=1) > 0.5]
        naive += ((plain.mean(axis=0) > 0.5) == truth).mean() / trials
        best = ladder.submit("first", guesses[0]).score
        liked = [guess for guess in guesses if ladder.submit("next", guess).leads] or [guesses[0]]
        best = ladder.submit("boosted", np.mean(liked, axis=0) > 0.5).score
        missed += abs(best - 0.5) > ladder.bound(level=0.95)
    assert naive > 0.6
    assert missed <= most(trials, 0.05)
