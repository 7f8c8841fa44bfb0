"""Scores of models: bounds of losses, the area under the ROC curve by enumeration, and scikit-learn's own searches."""

import copy
import itertools
import pickle
from fractions import Fraction

import numpy as np
import pytest
from tests.holdout.test_reusable import Spy

from noisette.errors import BudgetError, InputError, PrivacyError
from noisette.holdout import AUC, Loss, ReusableHoldout, Thresholdout, accuracy, auc, brier, log_loss, squared_error

N = 1000


def data(seed, n=N):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


def opened(**options):
    return ReusableHoldout(*data(1), *data(2), **({"budget": 3, "spend": 20, "threshold": "0.2"} | options))


def spied():
    spy = Spy()
    mechanism = Thresholdout.calibrated(20, budget=3, records=N, threshold="0.1")
    return ReusableHoldout(*data(1), *data(2), kept=(mechanism, spy)), spy


@pytest.fixture(scope="module")
def model():
    linear = pytest.importorskip("sklearn.linear_model")
    return linear.LogisticRegression().fit(*data(2))


# Losses


def reference(model, X, y):
    from sklearn import metrics

    p = model.predict_proba(X)
    return {
        "accuracy": metrics.accuracy_score(y, model.predict(X)),
        "log_loss": metrics.log_loss(y, p),
        "brier": metrics.brier_score_loss(y, p[:, 1]),
        "auc": metrics.roc_auc_score(y, p[:, 1]),
        "squared_error": metrics.mean_squared_error(y, model.predict(X)),
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "loss", ["accuracy", "log_loss", "brier", auc(least=300), squared_error(0, 1)], ids=lambda x: getattr(x, "name", x)
)
def test_scores_are_those_of_scikit_learn(loss, model):
    answer = opened().score(model, loss)
    name = loss if isinstance(loss, str) else loss.name
    assert answer.source == "training set"
    assert answer.value == pytest.approx(reference(model, *data(2))[name], abs=2e-6)
    holdout, spy = spied()
    holdout.score(model, loss)
    seen, exact = spy.seen[0], reference(model, *data(1))[name]
    read = {"log_loss": 1 / float(log_loss().high)}.get(name, 1) * N
    unit = 1 / 300 / holdout.mechanism.grid if name == "auc" else 1 / read / holdout.mechanism.grid
    assert seen.exact * unit == pytest.approx(exact, abs=2e-6 * 7)


@pytest.mark.slow
def test_row_by_row_gives_the_same(model):
    seen = []
    for slowly in (False, True):
        holdout, spy = spied()
        holdout.score(model, "log_loss", row_by_row=slowly)
        seen.append(spy.seen[0].exact)
    assert abs(seen[0] - seen[1]) <= N  # floats of other batches, rounded


class Prying:
    """A model that fails on one record, as scikit-learn's do for NaN."""

    classes_ = np.array([0, 1])

    def predict(self, X):
        if np.isnan(X).any():
            raise ValueError("canary")
        return X[:, 0] > 0

    def predict_proba(self, X):
        return np.column_stack([1 - self.predict(X), self.predict(X)])


@pytest.mark.parametrize("loss", ["accuracy", "log_loss", auc(least=300)], ids=str)
def test_a_model_that_fails_on_one_record_counts_for_the_others(loss):
    seen = []
    for value in (0.5, np.nan):
        X, y = data(1)
        X[7] = value
        spy = Spy()
        mechanism = Thresholdout.calibrated(20, budget=3, records=N, threshold="0.1")
        ReusableHoldout(X, y, *data(2), kept=(mechanism, spy)).score(Prying(), loss)
        seen.append(spy.seen[0].exact)
    assert abs(seen[0] - seen[1]) <= mechanism.grid


class Batch:
    classes_ = np.array([0, 1])

    def predict(self, X):
        return X[:, 0] > X[:, 0].mean()


def test_a_model_that_looks_at_the_whole_batch_is_refused():
    with pytest.raises(InputError, match="row_by_row=True"):
        opened().score(Batch())
    assert opened().score(Batch(), row_by_row=True).value == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("loss", [accuracy, brier, log_loss("0.01"), squared_error(-1, 3)], ids=lambda x: x.name)
def test_losses_stay_inside_of_their_bounds(loss):
    labels = np.array([0, 1, 5, -7])
    for p in (0.0, 0.3, 1.0):
        probabilities = np.tile([1 - p, p], (4, 1))
        predictions = probabilities if loss.uses == "probabilities" else np.full(4, 9 * p)
        found = loss.values(labels, predictions, np.array([0, 1]))
        assert np.all((found >= -1e-12) & (found <= 1 + 1e-12))


# The area under the ROC curve


def area(labels, scores, area):
    return area.exact(np.array(labels, dtype=bool), np.array(scores, dtype=float))


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(("n", "least"), [(3, 1), (4, 1), (4, 2), (5, 2), (6, 2), (6, 3)])
def test_the_area_moves_by_at_most_its_sensitivity(n, least):
    """All sets of n records with three scores, and all replacements; also where a class is smaller than stated."""
    records = list(itertools.product((0, 1), (0, 1, 2)))
    free, fixed = auc(least=least), auc(positives=least, negatives=least)
    largest = {True: Fraction(0), False: Fraction(0)}
    for rest in itertools.combinations_with_replacement(records, n - 1):
        found = {new: area(*zip(*rest, new, strict=True), free) for new in records}
        for one, two in itertools.combinations(records, 2):
            same = one[0] == two[0]
            largest[same] = max(largest[same], abs(found[one] - found[two]))
    assert largest[True] <= fixed.sensitivity(n) == Fraction(1, least)
    assert max(largest.values()) <= free.sensitivity(n)
    assert max(largest.values()) >= free.sensitivity(n) * Fraction(2, 3)  # a twin with half of it is convicted
    assert largest[True] == Fraction(1, least)


def test_a_balanced_area_with_labels_that_change_moves_by_more_than_one_over_least():
    """Why the sensitivity is not 1/least for all n: with six records and at least three of each class."""
    assert auc(least=3).sensitivity(6) == Fraction(1, 3) * max(1, Fraction(1, 2) + Fraction(2, 4))
    assert auc(least=40).sensitivity(80) > Fraction(1, 40)
    assert auc(least=40).sensitivity(117) == Fraction(1, 40)


def test_the_worst_area_with_labels_that_change():
    """The case of the proof: positives rank first, one of them becomes a negative that ranks first."""
    n, least = 30, 15
    labels, scores = [1] * least + [0] * (n - least), [2] * least + [0] * (n - least)
    before = area(labels, scores, auc(least=least))
    after = area([0, *labels[1:]], [3, *scores[1:]], auc(least=least))
    assert Fraction(9, 10) * auc(least=least).sensitivity(n) < abs(before - after) <= auc(least=least).sensitivity(n)
    assert abs(before - after) > Fraction(1, least)


@pytest.mark.slow
def test_ties_count_half_and_it_is_scikit_learns():
    pytest.importorskip("sklearn")
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(5)
    labels, scores = rng.random(200) < 0.4, rng.integers(0, 6, 200)
    assert float(area(labels, scores, AUC(1, 1, False))) == pytest.approx(roc_auc_score(labels, scores))


# scikit-learn


@pytest.mark.slow
def test_the_scorer_works_where_scikit_learn_takes_one(model):
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import check_scoring
    from sklearn.model_selection import GridSearchCV, check_cv, cross_val_score

    holdout = opened()
    scorer = holdout.scorer()
    assert check_scoring(model, scoring=scorer) is scorer
    assert scorer(model, *data(2)) == pytest.approx(reference(model, *data(2))["accuracy"], abs=1e-6)
    found = cross_val_score(LogisticRegression(), *data(2), scoring=scorer, cv=3, error_score="raise")
    assert found.shape == (3,)
    splitter = holdout.splitter()
    assert check_cv(splitter) is splitter
    search = GridSearchCV(LogisticRegression(), {"C": [1e-4, 1]}, scoring=holdout.scorer("log_loss"), cv=splitter)
    search.fit(*data(2))
    assert search.best_params_ == {"C": 1}
    assert search.best_score_ < 0
    assert search.n_splits_ == 1
    assert "log_loss" in repr(holdout.scorer("log_loss"))


@pytest.mark.slow
def test_a_search_can_be_cloned_but_not_sent_to_other_processes():
    pytest.importorskip("sklearn")
    from sklearn.base import clone
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    scorer = opened().scorer()
    search = GridSearchCV(LogisticRegression(), {"C": [1]}, scoring=scorer)
    assert clone(search).scoring is scorer is copy.deepcopy(scorer)
    with pytest.raises(PrivacyError, match="n_jobs=1"):
        pickle.dumps(scorer)


@pytest.mark.slow
def test_a_search_stops_when_the_holdout_is_locked():
    pytest.importorskip("sklearn")
    from sklearn.dummy import DummyClassifier
    from sklearn.model_selection import cross_val_score

    X, y = data(2)
    holdout = ReusableHoldout(X, 1 - y, X, y, budget=2, spend=20, threshold="0.2")
    from sklearn.linear_model import LogisticRegression

    with pytest.raises(BudgetError, match="locked"):
        cross_val_score(LogisticRegression(), X, y, scoring=holdout.scorer(), cv=5, error_score="raise")
    assert holdout.left == 0
    assert opened().score(DummyClassifier().fit(X, y)).value == pytest.approx(0.5, abs=0.1)


@pytest.mark.slow
def test_frames_keep_the_names_of_their_columns(model):
    pandas = pytest.importorskip("pandas")
    from sklearn.linear_model import LogisticRegression

    (X, y), (X_train, y_train) = data(1), data(2)
    frames = [pandas.DataFrame(part, columns=["a", "b", "c"]) for part in (X, X_train)]
    fitted = LogisticRegression().fit(frames[1], y_train)
    holdout = ReusableHoldout(frames[0], pandas.Series(y), frames[1], pandas.Series(y_train), budget=1, spend=20)
    assert holdout.score(fitted).value == pytest.approx(opened().score(model).value, abs=0.1)
    assert holdout.ask(lambda x, y: x["a"] > 0).source == "training set"


# Bad input

BAD = {
    "a scorer without bounds": lambda model: opened().score(model, "neg_mean_squared_error"),
    "a function as a loss": lambda model: opened().scorer(lambda y, p: 1),
    "a model without probabilities": lambda model: opened().score(Batch(), "brier"),
    "no model": lambda model: opened().score(3),
    "no labels": lambda model: ReusableHoldout(data(1)[0], None, data(2)[0], threshold="0.1").score(model),
    "a scorer without labels": lambda model: opened().scorer()(model, data(2)[0]),
    "auc without numbers": lambda model: auc(),
    "auc of one class": lambda model: auc(positives=3),
    "auc of none": lambda model: auc(least=0),
    "bounds in the wrong order": lambda model: squared_error(1, 1),
    "a clip of 0": lambda model: log_loss(0),
    "a loss without bounds": lambda model: Loss("mine", lambda y, p: y, 1, 1),
    "a guess of 7": lambda model: opened().score(model, auc(least=100), guess=7),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_sentence(name):
    with pytest.raises(InputError) as caught:
        BAD[name](Prying())
    assert str(caught.value).endswith(".")
    assert str(caught.value).count(". ") == 0
