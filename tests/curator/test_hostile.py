"""An analyst who means ill: what is refused costs nothing and touches nothing, and no answer or error tells of anyone.

Every question is asked of the clinic with and without one patient, the victim, whose rows hold values that nobody else
has: cost, error, columns and rows must be alike, and the values must be nowhere to be seen.
"""

import datetime
import logging
import math
import traceback
import warnings
from fractions import Fraction

import pytest
from tests.curator.clinic import WARDS, opened, watch
from tests.curator.hostile import ANSWERED, CANARY, NOWHERE, NUMBER, REFUSED

import noisette as nz
from noisette.errors import InputError, NoisetteError

VICTIM = (
    (CANARY, CANARY, NUMBER, float(NUMBER), float(NUMBER), CANARY, NUMBER, datetime.datetime(2031, 4, 15), True),
    (CANARY, "north", 0, math.nan, -math.inf, f"'; DROP TABLE visits; --{CANARY}", -(2**63), None, None),
    (CANARY, None, 2**63 - 1, -0.0, math.inf, "", 2**63 - 1, None, None),
)
TESTS = ((CANARY, NUMBER), (CANARY, None), (CANARY, 2**63 - 1))


@pytest.fixture(scope="module")
def clinics():
    """The clinic without and with the victim, watched."""
    made = [opened(nz.Approx(10**5, "1e-3")), opened(nz.Approx(10**5, "1e-3"), extra=VICTIM, more_labs=TESTS)]
    return [(curator, watch(curator)) for curator in made]


def outcome(curator, source, text, **options):
    """What an analyst can see: the error, or the columns with the number of rows; and what it cost."""
    before, touched = curator.budget, source.computed
    try:
        release = curator.sql(text, **options)
    except NoisetteError as error:
        shown = "".join(traceback.format_exception(error))
        free = curator.budget.spent == before.spent and curator.budget.left == before.left
        return type(error), str(error), shown, free and source.computed == touched
    texts = [repr(release), release._repr_html_(), release.to_json(), release.statement]
    names = [(column.name, str(column.values.type), column.measured) for column in release.columns]
    return names, len(release), release.guarantee, " ".join(texts)


def sentence(text):
    return text.endswith((".", "?")) and "\n" not in text and len(text) < 300 and "Traceback" not in text


# Refusals


@pytest.mark.parametrize("text", REFUSED)
def test_refused_before_anything_is_touched_and_in_the_same_words(clinics, text):
    found = [outcome(*clinic, text, spend=1) for clinic in clinics]
    for error, said, shown, free in found:
        assert error is InputError
        assert sentence(said)
        assert free
        assert not tells(shown)
    assert found[0][1] == found[1][1]


@pytest.mark.parametrize(
    "spend", [0, -1, math.nan, math.inf, -math.inf, "abc", "", None, [], True, "1e400", 1j], ids=repr
)
def test_a_spend_that_is_none(clinics, spend):
    curator, source = clinics[1]
    before, touched = curator.budget.spent, source.computed
    with pytest.raises(InputError) as caught:
        curator.sql("SELECT COUNT(*) FROM visits", spend=spend)
    assert sentence(str(caught.value))
    assert (curator.budget.spent, source.computed) == (before, touched)


@pytest.mark.parametrize("level", [0, 1, -1, 2, math.nan, math.inf, "abc", None], ids=repr)
def test_a_level_that_is_none(clinics, level):
    curator, source = clinics[1]
    before, touched = curator.budget.spent, source.computed
    with pytest.raises(InputError):
        curator.sql("SELECT COUNT(*) FROM visits", spend=1, level=level)
    assert (curator.budget.spent, source.computed) == (before, touched)


@pytest.mark.parametrize("question", ["", " ", ";", "--", None, 5, b"SELECT 1", [], [None], {}, {1, 2}], ids=repr)
def test_a_question_that_is_none(clinics, question):
    curator, source = clinics[1]
    before, touched = curator.budget.spent, source.computed
    with pytest.raises(InputError):
        curator.ask(question, spend=1)
    assert (curator.budget.spent, source.computed) == (before, touched)


def test_one_bad_question_of_a_batch_refuses_all(clinics):
    curator, source = clinics[1]
    before, touched = curator.budget.spent, source.computed
    with pytest.raises(InputError):
        curator.ask(["SELECT COUNT(*) FROM visits", "SELECT SUM(weight) FROM visits"], spend=1)
    assert (curator.budget.spent, source.computed) == (before, touched)


@pytest.mark.parametrize("text", NOWHERE)
def test_formulas_that_cannot_be_computed_are_refused_before_anything_is_touched(clinics, text):
    error, said, _, free = outcome(*clinics[1], text, spend=1)
    assert error is InputError
    assert sentence(said)
    assert free


# Answers


def tells(text):
    """Whether the canary sings."""
    return CANARY in text or str(NUMBER) in text.replace(",", "").replace("_", "")


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("text", ANSWERED)
@pytest.mark.parametrize("spend", [nz.Approx(1, "1e-6"), nz.Approx("1/10", "1e-9")], ids=str)
def test_cost_and_columns_are_those_without_the_victim(clinics, text, spend):
    """Which unknown keys are told is up to noise, so there only the columns are compared."""
    without, with_victim = (outcome(*clinic, text, spend=spend) for clinic in clinics)
    assert isinstance(without[0], list)
    assert without[0] == with_victim[0]
    assert without[2] == with_victim[2]
    if "GROUP BY note" not in text and "GROUP BY stay" not in text and "GROUP BY y" not in text:
        assert without[1] == with_victim[1]
    if not tells(text):
        assert not tells(with_victim[3])


@pytest.mark.slow
def test_canaries_are_nowhere(clinics, tmp_path, monkeypatch, caplog):
    """Not in logs, warnings or files, whatever is asked; what an analyst wrote stands in the ledger."""
    for name in ("HOME", "TMPDIR", "TEMP", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    curator = opened(nz.Approx(10**5, "1e-3"), extra=VICTIM, more_labs=TESTS)
    source = watch(curator)
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for text in [*ANSWERED, *REFUSED]:
            if not tells(text):
                assert not tells(repr(outcome(curator, source, text, spend=nz.Approx(1, "1e-6"))))
    assert not tells(caplog.text)
    assert not tells(" ".join(str(warning.message) for warning in caught))
    assert not any(tells(path.name) or tells(path.read_bytes().decode("latin-1")) for path in files(tmp_path))
    assert not tells(repr(curator.ledger.entries) + repr(curator.budget) + repr(curator))


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_failing_engine_says_nothing_of_the_data():
    """Neither what it raises itself nor what anything else raises on the way; the charge stays."""
    curator = opened(nz.Pure(9), extra=VICTIM)
    curator._source._session.connection.close()
    with pytest.raises(NoisetteError) as caught:
        curator.sql("SELECT COUNT(*) FROM visits", spend=1)
    assert not tells("".join(traceback.format_exception(caught.value)))

    def failing(*_):
        raise ValueError(f"Failed to parse '{CANARY}'")

    curator._source.aggregate = failing
    with pytest.raises(NoisetteError) as caught:
        curator.sql("SELECT COUNT(*) FROM labs", spend=1)
    assert not tells("".join(traceback.format_exception(caught.value)))
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert curator.budget.spent.epsilon == 2


# Awkward data


@pytest.fixture(scope="module", params=[0, 1], ids=["nobody", "one patient"])
def small(request):
    return opened(nz.Approx(100, "1e-3"), patients=request.param)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("text", ANSWERED)
def test_empty_tables_and_tables_of_one(small, text):
    release = small.sql(text, spend=nz.Approx(1, "1e-6"))
    for column in release.columns:
        if column.measured:
            for value, low, high in zip(column.values.to_pylist(), column.low, column.high, strict=True):
                assert (low, high) == column.span if value is None else low <= value <= high


def test_columns_of_nothing_but_null():
    nobody = tuple((f"p{i}", None, None, None, None, None, None, None, None) for i in range(50))
    curator = opened(patients=0, extra=nobody)
    release = curator.sql("SELECT COUNT(*) AS n, COUNT(age) AS k, SUM(cost) AS s FROM visits", spend=50)
    assert abs(release["n"].values[0].as_py() - 50) <= 5
    assert abs(release["k"].values[0].as_py()) <= 5
    wards = curator.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", spend=50)
    assert wards["ward"].values.to_pylist() == [*sorted(WARDS), None]
    assert abs(wards["n"].values[3].as_py() - 50) <= 5


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.0, 1e308, -1e308, None])
def test_an_awkward_value_moves_a_sum_no_further_than_its_bounds(value):
    """At such a spend noise is below 1 but for a chance of 1e-9; three rows of 1,000 are the most that count."""
    extra = tuple(("victim", "north", 5, value, value, "x", 0, None, True) for _ in range(10))
    text, spend = "SELECT SUM(cost) AS s FROM visits", Fraction(10**5)
    found = opened(nz.Pure(10**6), patients=3, extra=extra).sql(text, spend=spend)["s"].values[0].as_py()
    assert -2 <= found - 2 * (0 + 10 + 20) <= 3002
