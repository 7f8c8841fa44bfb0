"""Asking a reusable holdout: what is answered and refused, and what an analyst who controls the function learns."""

import copy
import math
import os
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse

from noisette.errors import BudgetError, FailedError, InputError, NoisetteError, PrivacyError
from noisette.holdout import ReusableHoldout, Thresholdout, records
from noisette.holdout.machine import State

N = 400
VICTIM = 16


def sets(bit=1.0, n=N):
    """A holdout and a training set of n records (number, secret); one record of the holdout has this secret, else 0."""
    X = np.column_stack([np.arange(n), np.arange(n) % 2]).astype(float)
    train = X.copy()
    X[VICTIM, 1] = bit
    return X, X[:, 1] > 0, train, train[:, 1] > 0


def opened(bit=1.0, **options):
    return ReusableHoldout(*sets(bit), **({"budget": 3, "spend": 20, "threshold": "0.1"} | options))


class Spy:
    """A line that notes the exact answers and releases nothing."""

    def __init__(self):
        self.seen, self.last = [], State(0, 0, 0)

    def ask(self, compute):
        self.seen.append(compute())
        return None, State(len(self.seen), 0, 0)


def spied(bit):
    spy = Spy()
    mechanism = Thresholdout.calibrated(20, budget=3, records=N, threshold="0.1")
    return ReusableHoldout(*sets(bit), kept=(mechanism, spy)), spy


# Answers


def test_an_answer_says_where_it_came_from_what_it_cost_and_what_is_left():
    holdout = opened()
    free = holdout.ask(lambda x, y: y)
    assert (free.source, free.cost, free.left, free.value) == ("training set", 0, 3, 0.5)
    assert free.low < free.value < free.high
    paid = holdout.ask(lambda x, y: x[0] < N / 2, guess="0.9")  # 0.4 off: noise of scale 0.02 there, p < 1e-8
    assert (paid.source, paid.cost, paid.left) == ("holdout", 1, 2)
    assert abs(float(paid) - 0.5) < 0.25
    assert repr(paid).endswith("from the holdout, cost 1, 2 left")
    assert holdout.ask(lambda x, y: y, guess="0.5").source == "guess"


@pytest.mark.parametrize("options", [{}, {"method": "published"}, {"budget": 12, "spend": "20,1e-6"}], ids=str)
def test_it_locks_itself_when_the_budget_is_gone(options):
    holdout = opened(**options)
    calls = []
    for _ in range(holdout.mechanism.budget):
        assert holdout.ask(lambda x, y: 1, guess=0).cost == 1
    with pytest.raises(BudgetError, match="is locked"):
        holdout.ask(lambda x, y: calls.append(x) or 1, guess=0)
    assert len(calls) == N + 32  # the training set alone
    assert "0 of" in repr(holdout)


def test_any_function_with_a_sensitivity():
    holdout = opened()
    answer = holdout.ask(lambda X, y: X[:, 1].mean(), sensitivity=f"1/{N}", bounds=(0, 1))
    assert (answer.source, answer.value) == ("training set", 0.5)
    answer = holdout.ask(lambda X, y: 10 * X[:, 1].mean(), sensitivity=f"10/{N}", bounds=(0, 10), guess=10)
    assert answer.source == "holdout"
    assert abs(answer.value - 5) < 2.5


@pytest.mark.parametrize("s", [1e-3, 0.37, 5.0])
def test_a_function_is_in_steps_of_its_sensitivity(s):
    """Numbers that are the sensitivity apart, floats that are rounded, stay within the grid."""
    for low in (0.0, 0.1, 1 / 3, -7.77):
        found = []
        for value in (low, low + s):
            holdout, spy = spied(1)
            holdout.ask(lambda X, y, value=value: value, sensitivity=s, guess=0)
            found.append(spy.seen[0].exact)
        grid = holdout.mechanism.grid
        assert grid - 2 <= abs(found[1] - found[0]) <= grid


@pytest.mark.parametrize(("value", "s"), [(1e300, 1e-9), (math.inf, 1), (-math.inf, 1e-300), (1e300, 1e307)], ids=str)
def test_enormous_numbers_are_put_where_they_can_be_compared(value, s):
    holdout = opened()
    answer = holdout.ask(lambda X, y: value if X[VICTIM, 1] else 0, sensitivity=s, guess=1e200)
    assert answer.level == 0.95
    assert isinstance(answer.value, float)


def test_records_without_labels_and_sparse_ones():
    X, _, train, _ = sets()
    assert ReusableHoldout(X, None, train, budget=1, spend=20).ask(lambda x: x[1]).value == 0.5
    sparse = [scipy.sparse.csr_array(part) for part in (X, train)]
    holdout = ReusableHoldout(sparse[0], None, sparse[1], budget=1, spend=20)
    assert holdout.ask(lambda X: X.toarray()[:, 1], vectorised=True).value == 0.5


def test_vectorised_functions_give_the_same():
    one, two = spied(1), spied(1)
    one[0].ask(lambda x, y: x[1] / 2 + y / 3)
    two[0].ask(lambda X, y: X[:, 1] / 2 + y / 3, vectorised=True)
    assert one[1].seen == two[1].seen


# What an analyst learns who controls the function


def is_victim(x):
    return x[0] == VICTIM and x[1] == 1.0


def raising(kind):
    def phi(x, y):
        if is_victim(x):
            raise kind("canary")
        return 1.0

    return phi


def giving(value):
    return lambda x, y: value if is_victim(x) else 1.0


def warning(x, y):
    if is_victim(x):
        warnings.warn("canary", stacklevel=1)
        np.float64(1) / np.float64(0)
    return 1.0


def changing(x, y):
    if is_victim(x):
        x[:] = np.nan
    return 1.0


def endless(x, y):
    return endless(x, y) if is_victim(x) else 1.0


class Odd(float):
    def __float__(self):
        raise RuntimeError("canary")


PHIS = {
    **{kind.__name__: raising(kind) for kind in (ValueError, InputError, SystemExit, KeyboardInterrupt, MemoryError)},
    **{f"gives {value}": giving(value) for value in (math.nan, math.inf, -math.inf, 1e308, 10**400, -5)},
    "gives no number": giving("canary"),
    "gives an array": giving(np.ones(7)),
    "gives nothing": giving(None),
    "gives an odd float": giving([Odd(1), Odd(2)]),
    "warns": warning,
    "changes its record": changing,
    "recurses": endless,
}


@pytest.mark.parametrize("name", PHIS)
def test_one_record_moves_what_is_compared_by_one_share_and_nothing_else_is_shown(name, capfd):
    phi, seen = PHIS[name], []
    for bit in (0.0, 1.0):
        holdout, spy = spied(bit)
        with warnings.catch_warnings(record=True) as shown:
            warnings.simplefilter("always")
            holdout.ask(phi, guess="1/2")
        assert shown == []
        seen.append(spy.seen[0])
    assert tuple(capfd.readouterr()) == ("", "")
    assert abs(seen[0].exact - seen[1].exact) <= holdout.mechanism.grid
    assert seen[0].exact == N * holdout.mechanism.grid
    holdout.ask(lambda x, y: x[1], guess="1/2")  # a later question sees the records as they were
    assert spy.seen[1].exact == (N / 2 + 1) * holdout.mechanism.grid


def vectorised(phi):
    return lambda X, y: np.array([phi(x, label) for x, label in zip(X, y, strict=True)], dtype=float)


@pytest.mark.parametrize("name", [name for name in PHIS if name != "changes its record"])
def test_a_function_of_all_rows_that_fails_for_one_counts_for_the_others(name):
    seen = []
    for bit in (0.0, 1.0):
        holdout, spy = spied(bit)
        holdout.ask(vectorised(PHIS[name]), vectorised=True, guess="1/2")
        seen.append(spy.seen[0].exact)
    assert abs(seen[0] - seen[1]) <= holdout.mechanism.grid


def test_a_twin_that_checks_ranges_on_the_holdout_is_convicted():
    """What is refused there says that the victim's bit is 1."""
    phi = giving(7)
    for bit, refused in ((0.0, False), (1.0, True)):
        kept = records.Records.of(*sets(bit)[:2], "holdout set")
        try:
            records.checked(phi, kept, "record", "The function")
            assert not refused
        except InputError:
            assert refused


def test_a_twin_that_counts_nothing_when_one_record_fails_is_convicted():
    found = [records._whole(vectorised(raising(ValueError)), records.Records.of(*sets(bit)[:2], "")) for bit in (0, 1)]
    assert [each is None for each in found] == [False, True]  # so all would count as 0: N shares instead of one


def test_functions_that_look_at_other_records_are_refused_on_the_training_set():
    holdout, spy = spied(1)
    with pytest.raises(InputError, match="depends on other records"):
        holdout.ask(lambda X, y: X[:, 1] > X[:, 1].mean(), vectorised=True)
    calls = []

    def counting(x, y):
        calls.append(x)
        return min(1, len(calls) / 1000)

    with pytest.raises(InputError, match="depends on other records"):
        holdout.ask(counting)
    assert spy.seen == []


def test_a_function_that_fails_as_a_whole_counts_as_nothing():
    holdout, spy = spied(1)

    def f(X, y):
        if X[VICTIM, 1] == 1:
            raise ValueError("canary")
        return 1.0

    holdout.ask(f, sensitivity=1, bounds=(0, 2))
    holdout.ask(f, sensitivity=1, bounds=(1, 2))
    assert [each.exact for each in spy.seen] == [0, holdout.mechanism.grid - 1]


def test_a_question_may_ask_and_a_fork_ends_in_the_child():
    holdout = opened()
    inner = []

    def asking(x, y):
        if not inner:
            inner.append(holdout.ask(lambda x, y: y))
        return 1.0

    assert holdout.ask(asking).value == 1.0
    parent, children = os.getpid(), []

    def forking(x, y):
        if is_victim(x) and os.getpid() == parent:
            children.append(os.fork())
        return 1.0

    assert holdout.ask(forking).value == 1.0
    assert os.getpid() == parent
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 1


def test_it_cannot_be_copied_nor_used_after_a_fork():
    holdout = opened()
    for act in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(PrivacyError, match="cannot be copied"):
            act(holdout)
    child = os.fork()
    if not child:
        try:
            holdout.ask(lambda x, y: 1)
        except PrivacyError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_computation_that_fails_ends_it(monkeypatch):
    holdout = opened()

    def broken(*_):
        raise MemoryError("canary")

    with monkeypatch.context() as patch:
        patch.setattr("noisette.holdout.reusable.values", broken)
        with pytest.raises(FailedError) as caught:
            holdout.ask(lambda x, y: 1)
    assert caught.value.__context__ is None
    with pytest.raises(FailedError):
        holdout.ask(lambda x, y: 1)


# Bad input

X, Y, XT, YT = sets()
BAD = {
    "no training set": lambda: ReusableHoldout(X, Y),
    "no labels of the training set": lambda: ReusableHoldout(X, Y, XT),
    "an empty holdout": lambda: ReusableHoldout(X[:0], Y[:0], XT, YT),
    "an empty training set": lambda: ReusableHoldout(X, Y, XT[:0], YT[:0]),
    "labels of another length": lambda: ReusableHoldout(X, Y[:5], XT, YT),
    "a number": lambda: ReusableHoldout(3, None, 4),
    "B = 0": lambda: ReusableHoldout(X, Y, XT, YT, budget=0),
    "a budget of 1.5": lambda: ReusableHoldout(X, Y, XT, YT, budget=1.5),
    "nothing to spend": lambda: ReusableHoldout(X, Y, XT, YT, spend=0),
    "a threshold of 2": lambda: ReusableHoldout(X, Y, XT, YT, threshold=2),
    "an unknown method": lambda: ReusableHoldout(X, Y, XT, YT, method="new"),
    "noise and a spend": lambda: ReusableHoldout(X, Y, XT, YT, noise=0.1, spend=1, method="published"),
    "too few records": lambda: ReusableHoldout(X[:20], Y[:20], XT, YT, budget=100),
    "no function": lambda: opened().ask(3),
    "a function above 1": lambda: opened().ask(lambda x, y: 2),
    "a function below 0": lambda: opened().ask(lambda x, y: -0.1),
    "a function that is NaN": lambda: opened().ask(lambda x, y: math.nan),
    "a function that raises": lambda: opened().ask(lambda x, y: 1 // 0),
    "a function without a number": lambda: opened().ask(lambda x, y: "a"),
    "a function of two numbers": lambda: opened().ask(lambda x, y: x),
    "a guess of 2": lambda: opened().ask(lambda x, y: 1, guess=2),
    "a level of 95": lambda: opened().ask(lambda x, y: 1, level=95),
    "a sensitivity of 0": lambda: opened().ask(lambda X, y: 1, sensitivity=0),
    "bounds in the wrong order": lambda: opened().ask(lambda X, y: 1, sensitivity=1, bounds=(1, 0)),
    "a function out of its bounds": lambda: opened().ask(lambda X, y: 3, sensitivity=1, bounds=(0, 1)),
    "a function of all that raises": lambda: opened().ask(lambda X, y: 1 // 0, sensitivity=1),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_sentence(name):
    with pytest.raises(InputError) as caught:
        BAD[name]()
    text = str(caught.value)
    assert text.endswith(".")
    assert text.count(". ") == 0
    assert "canary" not in text
    assert isinstance(caught.value, NoisetteError)


def test_bad_questions_cost_nothing_and_touch_no_holdout():
    holdout, spy = spied(1)
    for phi in (lambda x, y: 2, lambda x, y: 1 // 0):
        with pytest.raises(InputError):
            holdout.ask(phi)
    assert spy.seen == []
