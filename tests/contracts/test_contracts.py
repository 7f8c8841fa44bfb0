"""Every example of every mechanism keeps every clause of its contract, and every broken twin is convicted.

A statistical clause fails a sound mechanism with probability 1e-9; it is looked at twice, so a case with p < 1e-16.
"""

import itertools
import json
from collections import Counter

import numpy as np
import pytest

import noisette as nz
from noisette.audit.contract import CHECKS, checks_of, discovered
from noisette.audit.finding import QUICK, THOROUGH, Effort
from noisette.audit.report import Audit, as_json
from noisette.audit.twins import TWINS, twins_of
from noisette.errors import InputError
from noisette.mechanisms.contract import Output

EXAMPLES = [example for _, example in discovered()]
SAMPLING = {"arrays", "one by one", "independent", "black box", "floating point"}
THOUSANDS_OF_CALLS = {"quiet", "loud", "same noise"}
SEARCHED = {"BestOf", "Gaussian", "GumbelTop", "Quantile", "Smooth"}  # calibrated by a search

# Most twins are convicted by few draws. CONVICTING has enough for each except with p < 1e-5; there are four looks.
FEW = Effort(array=2**17, slow_array=2**14, single=2000, vector=1000)
CONVICTING = Effort(array=2**21, slow_array=2**17, single=10_000, vector=4000)
LOOKS = (QUICK, FEW, *[CONVICTING] * 4)

# Twins that some examples of a kind cannot have; `make` returns the reason.
NOT_ALWAYS = {"low curve", "floating", "half", "quiet", "loud", "forgetful", "wasteful"}


def case(example, label, *more, slow):
    marks = [pytest.mark.slow] if slow else []
    return pytest.param(example, label, *more, id=f"{example!r}-{label}".replace("Fraction", ""), marks=marks)


def clauses():
    """Every check of every example; what draws takes millions of one example of each class, fewer of the others."""
    seen = set()
    for example in EXAMPLES:
        effort = QUICK if type(example) in seen else THOROUGH
        seen.add(type(example))
        for check in checks_of(example):
            yield case(example, check, effort, slow=is_slow(example, check))


def is_slow(example, check):
    """Thousands of draws are slow, and so is the variance of a choice among many; what is computed is quick."""
    if check == "calibrated":
        return type(example).__name__ in SEARCHED
    return check in SAMPLING or (check == "variance" and getattr(example, "candidates", 0) > 6)


def glances():
    """The checks that draw, of one example of every class."""
    for example in {type(example): example for example in reversed(EXAMPLES)}.values():
        yield from (case(example, check, slow=False) for check in checks_of(example) if check in SAMPLING)


def twins():
    """Every twin of every example; of twins of outcomes that take thousands of calls, those of two examples."""
    shown = Counter()
    for example in EXAMPLES:
        shown[type(example)] += 1
        for name in twins_of(example):
            if example.kind is not Output.OUTCOME or name not in THOUSANDS_OF_CALLS or shown[type(example)] <= 2:
                yield case(example, name, slow=True)


def twins_of_classes():
    """Each class with its examples and the name of a twin."""
    for of_class in itertools.groupby(sorted(EXAMPLES, key=_class), key=_class):
        examples = list(of_class[1])
        for name in {name: None for example in examples for name in twins_of(example)}:
            yield pytest.param(examples, name, id=f"{of_class[0]}-{name}")


def _class(example):
    return type(example).__name__


@pytest.mark.parametrize(("example", "check", "effort"), list(clauses()))
def test_every_example_keeps_the_contract(example, check, effort):
    check_it = checks_of(example)[check]
    finding = check_it(example, effort)
    if not finding.passed and check in SAMPLING:
        finding = check_it(example, effort)  # with fresh coins: a fault shows again
    assert finding.passed, finding
    assert finding.check == check
    assert finding.sentence.endswith(".")


@pytest.mark.nightly("millions of draws of every example: of one example of each class they are drawn by every run")
@pytest.mark.parametrize(("example", "check", "effort"), [case for case in clauses() if case.values[1] in SAMPLING])
def test_millions_of_draws_of_every_example_follow_its_law(example, check, effort):
    check_it = checks_of(example)[check]
    assert check_it(example, THOROUGH).passed or check_it(example, THOROUGH).passed


@pytest.mark.parametrize(("example", "check"), list(glances()))
def test_a_few_draws_of_every_class_follow_its_law(example, check):
    check_it = checks_of(example)[check]
    assert check_it(example, QUICK).passed or check_it(example, QUICK).passed  # twice, like the thousands above


def convict(example, name):
    """Convict a twin of an example; False if the example cannot have it."""
    twin, checks = twins_of(example)[name], checks_of(example)
    broken = twin.make(example)
    if isinstance(broken, str):
        assert name in NOT_ALWAYS, broken
        return False
    once = example.kind is Output.OUTCOME and name == "same noise"
    looks = (
        checks[check](broken, THOROUGH if once else effort)
        for effort in LOOKS  # a statistical check may need more than one look at a small lie
        for check in twin.convicted_by
        if check in checks
    )
    convicting = next((finding for finding in looks if not finding.passed), None)
    assert convicting is not None
    assert convicting.witness.endswith((".", "more)"))
    return True


@pytest.mark.slow
@pytest.mark.parametrize(("examples", "name"), list(twins_of_classes()))
def test_every_twin_of_a_class_is_convicted(examples, name):
    assert any(convict(example, name) for example in examples if name in twins_of(example)) or name in NOT_ALWAYS


@pytest.mark.nightly("every example has each twin: one of each class is convicted by every run")
@pytest.mark.parametrize(("example", "name"), list(twins()))
def test_every_twin_is_convicted(example, name):
    convict(example, name)


@pytest.mark.slow
def test_a_twin_that_some_examples_lack_belongs_to_others():
    made = {(m.kind, name) for m in EXAMPLES for name, t in twins_of(m).items() if not isinstance(t.make(m), str)}
    possible = {(kind, twin.name) for twin in TWINS for kind in twin.kinds}
    assert {name for _, name in possible - made} == {"low curve"}
    assert (Output.NUMBERS, "low curve") in made


def test_every_class_has_an_example_whose_noise_can_be_scaled():
    scaled = {type(m) for m in EXAMPLES if not isinstance(twins_of(m)["quiet"].make(m), str)}
    assert scaled == {type(m) for m in EXAMPLES}


ATTACKS = {"black box", "floating point"}  # they know no law, and see no lie in few draws


@pytest.mark.parametrize("kind", list(Output))
def test_every_check_of_a_kind_has_a_twin_of_that_kind(kind):
    convicting = {check for twin in TWINS if kind in twin.kinds for check in twin.convicted_by}
    checks = {check.name for check in CHECKS if kind in check.kinds}
    assert checks - (ATTACKS if kind is not Output.NUMBERS else set()) <= convicting


@pytest.mark.parametrize("table", [CHECKS, TWINS], ids=["checks", "twins"])
def test_names_are_unique_within_a_kind(table):
    named = Counter((kind, row.name) for row in table for kind in row.kinds)
    assert set(named.values()) == {1}


def test_every_kind_has_examples():
    assert {example.kind for example in EXAMPLES} == set(Output)


@pytest.mark.parametrize(
    ("check", "name", "kind"),
    [
        ("sums to one", "too probable", "Geometric"),
        ("private", "modest claim", "Geometric"),
        ("loss", "modest claim", "Gaussian"),
        ("tight", "immodest claim", "Gaussian"),
        ("delta curve", "low curve", "Gaussian"),
        ("arrays", "quiet", "Geometric"),
        ("one by one", "loud", "Geometric"),
        ("independent", "same noise", "Laplace"),
        ("variance", "boasting", "RandomizedResponse"),
        ("interval", "narrow", "Staircase"),
        ("interval", "wide", "Staircase"),
        ("relations", "no relation", "Staircase"),
        ("refusals", "indiscreet", "Laplace"),
        ("lattice", "off the lattice", "Gaussian"),
        ("calibrated", "forgetful", "Geometric"),
        ("calibrated", "forgetful", "SparseVector"),
        ("calibrated", "forgetful", "StableMode"),
        ("calibrated", "wasteful", "Laplace"),
        ("black box", "half", "TruncatedGeometric"),
        ("floating point", "floating", "Laplace"),
    ],
)
def test_each_check_convicts_by_itself(check, name, kind):
    examples = [example for example in EXAMPLES if type(example).__name__ == kind]
    made = (twins_of(example)[name].make(example) for example in examples)
    broken = next(twin for twin in made if not isinstance(twin, str))
    looks = (checks_of(broken)[check](broken, CONVICTING) for _ in range(4))
    convicting = next(finding for finding in looks if not finding.passed)
    assert convicting.witness.endswith((".", "more)"))


class Certain(nz.Geometric):
    """It releases the answer itself: no output of one answer is one of another."""

    def pmf(self, y, x):
        return np.where(np.equal(y, x), 1.0, 0.0)

    def support(self, x):
        return np.array([x])

    def variance(self):
        return 0.0


class Betraying(nz.mechanisms.Sparse):
    """It says once in a hundred which input it has."""

    def outcomes(self, x):
        return {y: 0.99 * p for y, p in super().outcomes(x).items()} | {repr(x): 0.01}


@pytest.mark.parametrize(
    ("broken", "said"),
    [(Certain(1), "0 and 1 at distance 1"), (Betraying(2, positives=1), "has probability 0.01 and 0")],
)
def test_an_outcome_without_a_counterpart_is_found_and_shown(broken, said):
    exact = [check for name, check in checks_of(broken).items() if name not in SAMPLING | {"interval"}]
    found = {finding.check: finding for finding in (check(broken, QUICK) for check in exact)}
    assert not found["private"].passed
    assert said in found["private"].witness
    assert isinstance(twins_of(broken)["immodest claim"].make(broken), str) is (broken.kind is Output.OUTCOME)
    text = as_json([Audit("Broken", {repr(broken): list(found.values())})])
    json.loads(text, parse_constant=pytest.fail)  # no Infinity, which is no JSON


def test_a_mechanism_that_refuses_every_promise_is_convicted():
    class Unwilling(nz.Geometric):
        @classmethod
        def calibrated(cls, guarantee, sensitivity=1):
            raise InputError("This guarantee is not kept here.")

    finding = checks_of(Unwilling(1))["calibrated"](Unwilling(1), QUICK)
    assert not finding.passed
    assert finding.witness == "Every promise is refused, expected that it keeps one."
