"""Every example of every mechanism keeps every clause of its contract, and every broken twin is convicted.

A statistical clause fails a sound mechanism with probability 1e-9; it is looked at twice, so a case with p < 1e-16.
"""

import pytest

from noisette.audit.contract import CHECKS
from noisette.audit.discover import discovered
from noisette.audit.finding import THOROUGH, Effort
from noisette.audit.subject import is_dyadic, is_procedure, is_vector, step
from noisette.audit.twins import TWINS, twin

EXAMPLES = [(name, example) for name, example in discovered() if not is_procedure(example)]
SAMPLING = {"arrays", "one by one", "independent", "black box", "floating point"}

# Enough draws to convict every twin at one look except with p < 1e-5; there are four.
CONVICTING = Effort(array=2**21, slow_array=2**17, single=10_000, vector=4000)


def is_slow(example, check):
    """Vectors take a call each, and grids that are no powers of two take their time."""
    return check in SAMPLING and (is_vector(example) or not is_dyadic(step(example)))


def cases(labels, slow):
    return [
        pytest.param(
            example,
            label,
            id=f"{example!r}-{label}".replace("Fraction", ""),
            marks=[pytest.mark.slow] if slow(example, label) else [],
        )
        for _, example in EXAMPLES
        for label in labels
    ]


@pytest.mark.parametrize(("example", "check"), cases(CHECKS, is_slow))
def test_every_example_keeps_the_contract(example, check):
    finding = CHECKS[check](example, THOROUGH)
    if not finding.passed and check in SAMPLING:
        finding = CHECKS[check](example, THOROUGH)  # with fresh coins: a fault shows again
    assert finding.passed, finding
    assert finding.check == check
    assert finding.sentence.endswith(".")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "name"),
    cases(TWINS, lambda example, name: any(is_slow(example, check) for check in TWINS[name].convicted_by)),
)
def test_every_twin_is_convicted(example, name):
    broken = twin(name, example)
    if isinstance(broken, str):
        assert (type(example).__name__, name) in WITHOUT, broken
        return
    assert any(
        not CHECKS[check](broken, CONVICTING).passed
        for _ in range(4)  # a statistical check may need more than one look at a small lie
        for check in TWINS[name].convicted_by
    )


CHOICES = "Exponential", "NoisyMax", "PermuteAndFlip"

# Which mechanisms have no such twin; `twin` returns the reason, and on some grids only.
WITHOUT = {
    *((name, "zero twice") for name in ("KNorm", "RandomizedResponse", "Keep", "Threshold", "Quantile", *CHOICES)),
    *((name, "half") for name in ("KNorm", "Keep", "Quantile", *CHOICES)),
    *((name, "wide") for name in ("RandomizedResponse", "TruncatedGeometric", "Quantile")),
    *((name, "low curve") for name, _ in EXAMPLES if name != "Gaussian"),
    *((name, "floating") for name, _ in EXAMPLES),
}


@pytest.mark.parametrize("row", sorted(WITHOUT))
def test_the_table_of_missing_twins_is_true(row):
    mechanism, name = row
    assert any(isinstance(twin(name, example), str) for kind, example in EXAMPLES if kind == mechanism)


def test_every_mechanism_and_every_check_has_twins():
    convicting = {check for broken in TWINS.values() for check in broken.convicted_by}
    assert convicting == set(CHECKS)
    for _, example in EXAMPLES:
        assert sum(not isinstance(twin(name, example), str) for name in TWINS) >= 13


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
        ("black box", "half", "TruncatedGeometric"),
        ("floating point", "floating", "Laplace"),
    ],
)
def test_each_check_convicts_by_itself(check, name, kind):
    examples = [example for known, example in EXAMPLES if known == kind]
    broken = next(made for made in (twin(name, example) for example in examples) if not isinstance(made, str))
    assert not all(CHECKS[check](broken, CONVICTING).passed for _ in range(4))
