"""A plan costs the same time whatever is spent and whatever the limits are, or it is refused in a sentence.

Time is that of the processor, so that a busy machine does not matter; a plan over the limit is stopped and flagged.
Every question of the contract suite is planned here as well: a new one is found by itself.
"""

import faulthandler
import re
import signal
import time
from contextlib import contextmanager
from fractions import Fraction

import pyarrow
import pytest
from tests.contracts import test_questions as contract
from tests.contracts.test_questions import EVERY, PUBLIC, RULES, VALUES, VISITS, WARDS, question

import noisette as nz
from noisette import questions
from noisette.errors import InputError

SECONDS = 2.0  # of processor time; most plans take a hundredth
THIRD = Fraction(1, 3**15)
DIGITS = "0.1" + "1234567890" * 30
CORNERS = {
    "1e-9": nz.Pure("1e-9"),
    "1e6": nz.Pure(10**6),
    "rho 1e-18": nz.ZCDP("1e-18"),
    "rho 1e6": nz.ZCDP(10**6),
    "1e-6, 1e-12": nz.Approx("1e-6", "1e-12"),
    "1e6, 1e-9": nz.Approx(10**6, "1e-9"),
}
MORE = {
    "third": nz.Pure(THIRD),
    "long": nz.Pure(DIGITS),
    "rho third": nz.ZCDP(THIRD),
    "1e-9, 0.999999": nz.Approx("1e-9", "0.999999"),
    "1e-9, 1e-30": nz.Approx("1e-9", "1e-30"),
    "1e-3, 1e-12": nz.Approx("1e-3", "1e-12"),
    "0.1, 1e-300": nz.Approx("0.1", "1e-300"),
    "1, 0.01": nz.Approx(1, "0.01"),
    "1, 0.999999": nz.Approx(1, "0.999999"),
    "1000, 1e-9": nz.Approx(1000, "1e-9"),
    "1e4, 1e-300": nz.Approx(10**4, "1e-300"),
    "1e6, 0.999999": nz.Approx(10**6, "0.999999"),
    "thirds": nz.Approx(1 + THIRD, THIRD),
    "long, long": nz.Approx(DIGITS, "0.00000" + DIGITS[2:]),
}
LIMITS = [
    {"rows": 1000, "groups": 1000, "rows_per_group": 1000},
    {"rows": 10**6, "groups": 10**6, "rows_per_group": 1},
    {"rows": 10**12, "groups": 10**12, "rows_per_group": 10**12},
]


def opened(limits=None, columns=None):
    rules = RULES | (limits or {}) | {"columns": RULES["columns"] | (columns or {})}
    tables = {"visits": VISITS.append_column("pay", pyarrow.array([1.5] * len(VISITS))), "wards": WARDS}
    policy = {"tables": {"visits": rules, "wards": PUBLIC}}
    return nz.open(tables, budget=nz.Approx(10**6, "0.9999999"), policy=policy)


@pytest.fixture(scope="module")
def curator():
    """One that has planned before, so that nothing is imported while the clock runs."""
    made = opened()
    for name in EVERY:
        repr(made.explain(question(name, made.schema), spend=nz.Approx(1, "1e-6")))
    return made


@contextmanager
def refusable():
    """Let a refusal pass, if it is one sentence."""
    refused = ""
    try:
        yield
    except InputError as refusal:
        refused = str(refusal)
    assert not refused or re.fullmatch(r"[^\n]{20,300}\.", refused)


@contextmanager
def quick(seconds=SECONDS):
    """Stop and flag what takes more processor time; what cannot be stopped ends the run after ten minutes."""

    def late(*_):
        raise AssertionError(f"took more than {seconds} s of processor time")

    before = signal.signal(signal.SIGPROF, late)
    faulthandler.dump_traceback_later(600, exit=True)
    begun = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
        assert time.process_time() - begun <= seconds
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGPROF, before)


def explained(curator, asked, **options):
    """Plan it within the limit; None where it is refused, in one sentence."""
    made = None
    with quick(), refusable():
        made = curator.explain(asked, **options)
        assert repr(made)
    return made


def test_a_plan_that_takes_long_is_flagged():
    def endless():
        while True:
            pass

    with pytest.raises(AssertionError, match="processor time"), quick(0.05):
        endless()


def test_every_kind_of_question_is_planned():
    asked = {type(value).__name__ for value in VALUES.values()}
    assert asked | {"Above", "Oracle", "Stream"} == set(questions.FILES.values())  # streams are planned below
    assert set(contract.ASKED) | set(VALUES) == set(EVERY)


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_no_spend_makes_planning_slow(curator, name):
    for spend in CORNERS.values():
        explained(curator, question(name, curator.schema), spend=spend)


@pytest.mark.nightly("odd numbers as spends: a few corners are planned by every run")
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("neighbours", nz.Neighbours, ids=str)
def test_no_odd_spend_makes_planning_slow(curator, name, neighbours):
    asked = question(name, curator.schema)
    for spend in MORE.values():
        with quick(), refusable():
            asked.offer(curator.schema, curator._promise(spend), neighbours, 0.95)


@pytest.mark.slow
@pytest.mark.parametrize("limits", LIMITS, ids=lambda limits: str(limits["rows"]))
def test_no_limit_makes_planning_slow(limits):
    curator = opened(limits, {"age": {"bounds": [0, 10**15], "nullable": False}})
    for name in EVERY:
        asked = question(name, curator.schema)
        for spend in (nz.Pure(1), nz.Approx("0.1", "1e-9"), nz.Approx(1000, "1e-12")):
            explained(curator, asked, spend=spend)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in EVERY if not name.startswith("apply")])  # which runs on a schedule
def test_no_plan_makes_drawing_slow(curator, name):
    planned = 0
    for spend in (*CORNERS.values(), nz.Approx(1, "0.01")):
        offer = getattr(explained(curator, question(name, curator.schema), spend=spend), "offer", None)
        if offer is not None:
            planned += 1
            with quick():
                offer.answers(offer.draw(curator._source, curator.schema, bytes(16)))
    assert planned


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "options"),
    [
        ("SELECT COUNT(*) AS n FROM visits", {"error": 50}),
        ("SELECT diagnosis, COUNT(*) AS n FROM visits GROUP BY diagnosis", {"error": 50, "delta": "1e-12"}),
        ("SELECT ward, SUM(age) AS s, COUNT(*) AS n FROM visits GROUP BY ward", {"error": 2000, "delta": "1e-9"}),
        ("SELECT COUNT(*) AS n FROM visits", {"error": 50, "delta": "0.999"}),
    ],
)
def test_the_least_spend_for_an_error_is_found_in_seconds(curator, asked, options):
    with quick(3 * SECONDS):
        assert curator.explain(asked, **options).error <= options["error"]


@pytest.mark.slow
def test_what_is_bought_is_bought_quickly():
    for spend in (*CORNERS.values(), nz.Approx(1, "0.01")):
        curator = opened(columns={"pay": {"bounds": "private"}, "diagnosis": {"keys": "private"}})
        for buy, column in ((curator.bounds, "pay"), (curator.keys, "diagnosis")):
            with quick(), refusable():
                buy(column, spend=spend)


@pytest.mark.slow
def test_a_stream_begins_quickly():
    for spend in (*CORNERS.values(), *MORE.values()):
        curator = opened()
        with quick(), refusable():
            curator.stream(nz.Above(30), spend=spend).ask("SELECT COUNT(*) AS n FROM visits")
        with quick(), refusable():
            opened().stream(nz.Oracle("age"), spend=spend).ask({"age": [0, 30]})
        with quick(), refusable():
            opened().stream(nz.Stream("day", since="2020-01-01", until="2024-01-01", events=2), spend=spend).step()


@pytest.mark.parametrize(
    "spend",
    [
        "1e-30",
        0,
        nz.ZCDP("1e-30"),
        nz.Approx("1e-30", "1e-6"),
        nz.Approx(1, Fraction(1, 10**400)),
        nz.Pure(Fraction(1, 3**2000)),
        nz.Pure(1 + Fraction(1, 3**2000)),
        nz.Approx(1, Fraction(1, 3**100) + Fraction(1, 7**1000)),
    ],
    ids=str,
)
def test_what_cannot_be_planned_is_refused_before_anything_is_spent(spend):
    curator = opened()
    before = curator.budget.spent
    for ask in (curator.explain, curator.ask):
        with quick(), pytest.raises(InputError, match=r"^[^\n]{20,200}\.$"):
            ask("SELECT COUNT(*) AS n FROM visits", spend=spend)
    with pytest.raises(InputError):
        curator.explain("SELECT COUNT(*) AS n FROM visits", error=5, delta=Fraction(1, 10**400))
    assert curator.budget.spent == before


@pytest.mark.parametrize("spend", ["1e30", "1e-400", DIGITS * 2])
def test_numbers_that_nobody_spends_are_refused_when_they_are_read(spend):
    for kind in (nz.Pure, nz.ZCDP):
        with pytest.raises(InputError, match=r"\.$"):
            kind(spend)
