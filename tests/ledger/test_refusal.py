"""Refusals say what is left, what was asked and what to do, and a refused cost never looks as if it fitted."""

import re
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import noisette as nz
from noisette.errors import BudgetError, NoisetteError, PrivacyError
from noisette.ledger import Memory, accept, open_ledger, rebind
from noisette.privacy import ZCDP, Approx, Pure

GAUSSIAN = nz.Gaussian(5).guarantee(1)


def refused(budget, *costs):
    """What is said when the last one is charged."""
    memory = Memory(budget)
    for cost in costs[:-1]:
        memory.charge("q", cost, [])
    with pytest.raises(PrivacyError) as fault:
        memory.charge("q", costs[-1], [])
    text = str(fault.value)
    assert text.endswith(".")
    assert ". " not in text
    assert "DP" not in text
    assert "…" not in text
    return text


@pytest.mark.parametrize(
    ("budget", "costs", "words"),
    [
        (Pure(1), [Pure("0.9"), Pure("0.2")], "has ε = 0.1 left and this question costs ε = 0.2: spend less on it"),
        (Pure(1), [Pure(1), Pure("0.2")], "is used up and this question costs ε = 0.2: only what was answered"),
        (
            Approx(2, "1e-6"),
            [Pure("0.5"), Pure("1.6")],
            "has ε = 1.5 left (and δ = 1e-7 for unknown keys) and this question costs ε = 1.6:",
        ),
        (
            Approx(2, "1e-6"),
            [Approx("0.1", "1e-9"), Approx("0.1", "1e-6")],
            "has δ = 9.9e-8 left for what needs one, such as unknown keys, and this question needs δ = 1e-6: spend a",
        ),
        (ZCDP(1), [ZCDP("0.9"), Pure(1)], "has ρ = 0.1 left and this question costs ε = 1, which is ρ = 0.5:"),
        (ZCDP(1), [ZCDP("0.9"), ZCDP("0.2")], "has ρ = 0.1 left and this question costs ρ = 0.2:"),
        (
            Approx(1, "1e-12"),  # a part of so little holds no pair for plain sums
            [Pure("0.5"), GAUSSIAN * 9],
            "has ε = 0.5 left but no ρ, and this question costs ρ = 0.18: spend an epsilon alone on it",
        ),
        (Approx(1, "1e-6"), [GAUSSIAN * 9], "has ρ = 0.02707 left (and δ = 1e-7 for unknown keys) and this question"),
        (Approx(1, "1e-6"), [ZCDP("0.03")], "has ρ = 0.02081 left (and δ = 1e-7 for unknown keys) and this question"),
        (ZCDP(1), [Approx("0.1", "1e-9")], "needs a delta and the budget has none"),
        (Pure(1), [GAUSSIAN], "Gaussian noise and the budget is a pure epsilon"),
    ],
)
def test_what_is_left_what_was_asked_and_what_to_do(budget, costs, words):
    assert words in refused(budget, *costs)


def number(text):
    return Fraction(text.replace(",", ""))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.fractions(Fraction(1, 50), 1, max_denominator=997), st.fractions(Fraction(1, 50), 2, max_denominator=991))
def test_what_is_asked_is_shown_to_be_more_than_what_is_left(first, second):
    for budget, cost in ((Pure(1), Pure), (Approx(1, "1e-6"), Pure), (ZCDP(1), ZCDP), (Approx(2, "1e-6"), ZCDP)):
        memory = Memory(budget)
        try:
            memory.charge("q", cost(first), [])
            memory.charge("q", cost(second), [])
        except BudgetError as fault:
            left, asked = (re.search(pattern, str(fault)) for pattern in (r"has . = (\S+) left", r"costs . = ([^:]+):"))
            assert left is None or number(left[1]) < number(asked[1])


def said(act):
    with pytest.raises(NoisetteError) as fault:
        act()
    return str(fault.value)


def test_what_the_owner_has_to_do_is_named_for_the_shell_and_for_python(tmp_path):
    path, copy = tmp_path / "x.ledger", tmp_path / "y.ledger"
    open_ledger(path, budget=Pure(1), data={"visits": "a" * 64}).close()
    copy.write_bytes(path.read_bytes())
    accepting = said(lambda: open_ledger(copy))
    assert "`noisette ledger accept`, or noisette.ledger.accept in Python" in accepting
    rebinding = said(lambda: open_ledger(path, data={"visits": "b" * 64}))
    assert "`noisette ledger rebind --why …`, or noisette.ledger.rebind in Python" in rebinding
    assert "`noisette ledger budget`" in said(lambda: open_ledger(path, budget=Pure(2)))
    sharing = said(lambda: Memory(Pure(1), shares={"ana": Pure(1)}).charge("q", Pure(1), []))
    assert "--analyst" in sharing
    assert "`noisette ledger share`" in sharing
    accept(copy, why="as it says")
    rebind(path, why="as it says")
