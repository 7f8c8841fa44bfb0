"""Every example of every procedure keeps every clause of its contract, and every broken twin is convicted."""

from collections import Counter

import pytest

from noisette.audit.discover import discovered
from noisette.audit.finding import THOROUGH, Effort
from noisette.audit.procedure_twins import PROCEDURE_TWINS
from noisette.audit.procedures import PROCEDURES
from noisette.audit.subject import is_procedure

EXAMPLES = [example for _, example in discovered() if is_procedure(example)]
SAMPLING = {"one by one", "independent", "black box"}
CONVICTING = Effort(array=0, slow_array=0, single=10_000, vector=0)


STATISTICAL = "quiet", "loud", "same noise"  # these take thousands of calls: of each kind two examples will do


def twins():
    """Every twin of every example, but for those that take long."""
    shown = Counter()
    for example in EXAMPLES:
        shown[type(example)] += 1
        for name in PROCEDURE_TWINS:
            if name not in STATISTICAL or shown[type(example)] <= 2:
                yield pytest.param(example, name, id=f"{example!r}-{name}".replace("Fraction", ""))


def cases(labels, slow=()):
    return [
        pytest.param(
            example,
            label,
            id=f"{example!r}-{label}".replace("Fraction", ""),
            marks=[pytest.mark.slow] if label in slow else [],
        )
        for example in EXAMPLES
        for label in labels
    ]


@pytest.mark.parametrize(("example", "check"), cases(PROCEDURES, slow=["black box"]))
def test_every_example_keeps_the_contract(example, check):
    finding = PROCEDURES[check](example, THOROUGH)
    if not finding.passed and check in SAMPLING:
        finding = PROCEDURES[check](example, THOROUGH)  # with fresh coins: a fault shows again, p < 1e-16 otherwise
    assert finding.passed, finding
    assert finding.check == check
    assert finding.sentence.endswith(".")


@pytest.mark.slow
@pytest.mark.parametrize(("example", "name"), list(twins()))
def test_every_twin_is_convicted(example, name):
    broken = PROCEDURE_TWINS[name].make(example)
    if isinstance(broken, str):
        assert name in ("quiet", "loud"), broken
        return
    effort = THOROUGH if name == "same noise" else CONVICTING
    assert any(
        not PROCEDURES[check](broken, effort).passed
        for _ in range(4)  # a statistical check may need more than one look at a small lie
        for check in PROCEDURE_TWINS[name].convicted_by
    )


def test_every_check_has_twins():
    assert {check for broken in PROCEDURE_TWINS.values() for check in broken.convicted_by} == set(PROCEDURES)


def test_every_kind_has_an_example_whose_noise_can_be_scaled():
    kinds = {type(example) for example in EXAMPLES}
    scaled = {type(example) for example in EXAMPLES if not isinstance(PROCEDURE_TWINS["quiet"].make(example), str)}
    assert scaled == kinds
