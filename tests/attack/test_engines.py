"""The attacks on tables in other engines; here a few seeds, `python -m tests.attack --engine NAME` for more."""

import pytest
from tests.attack import attacks, twins
from tests.attack.attacks import COUNT, marked
from tests.attack.engines import in_session, on_server
from tests.attack.questions import Question
from tests.attack.tables import Shelf, Table, World
from tests.attack.trial import Convicted, attacked

from noisette.errors import InputError

pytestmark = pytest.mark.slow
BY_K = Question(keys=("v.k",), aggregates=("COUNT(*)",))
SUMS = Question(aggregates=("SUM(LEAST(GREATEST(v.k, 0), 2))", "COUNT(DISTINCT v.u)"))


@pytest.fixture
def placed(server, tmp_path):
    """Where worlds are stored: on a PostgreSQL server."""
    url = server()
    return Shelf(tmp_path, place=on_server(url.partition("options=")[0].rstrip("?&")))


@pytest.mark.parametrize("seed", range(2))
def test_random_tables_and_questions_on_a_server(placed, seed):
    assert attacks.tables(seed, placed)["worlds"] == 1


@pytest.mark.parametrize("seed", range(2))
def test_random_tables_and_questions_on_spark(sail, tmp_path, seed):
    found = attacks.tables(seed, Shelf(tmp_path / "shelf", place=in_session(sail, tmp_path / "files", valid=True)))
    assert found["worlds"] == 1
    assert found["answered"]


@pytest.mark.parametrize("twin", [twins.Twice, twins.Unbounded])
def test_twins_are_convicted_on_spark(sail, tmp_path, twin):
    shelf = Shelf(tmp_path / "shelf", place=in_session(sail, tmp_path / "files", valid=True), shrinks=False)
    with pytest.raises(Convicted, match=r"sensitivity: .* moved by"):
        attacked(shelf, marked(), [COUNT], twin)


def test_the_marked_world_is_innocent_on_a_server(placed):
    assert attacked(placed, marked(), [COUNT, BY_K, SUMS])["answered"] == 6


@pytest.mark.parametrize("twin", [twins.Twice, twins.Unbounded])
def test_twins_are_convicted_on_a_server(placed, twin):
    placed.shrinks = False
    with pytest.raises(Convicted, match=r"sensitivity: .* moved by"):
        attacked(placed, marked(), [COUNT], twin)


APART = [("'0044-03-15 (BC)'", "'0001-01-01'"), ("'200000-01-01'", "'infinity'")]


def apart(type, one, other):
    """Two units, one row of each may count."""
    rows = tuple((who, str(k)) for who, k in ((one, 0), (one, 1), (other, 2), (other, 0)) for _ in range(4))
    policy = {"tables": {"v": {"unit": "u", "rows": 1, "columns": {"k": {"bounds": [0, 2]}}}}}
    return World({"v": Table((("u", type), ("k", "BIGINT")), rows)}, policy, one, {"v": ((one, "2"),)})


@pytest.mark.parametrize(("one", "other"), APART)
def test_units_that_the_server_tells_apart_are_told_apart(placed, one, other):
    """Were two units one, who leaves would make room for a row of the other: twice what is stated."""
    placed.shrinks = False
    assert attacked(placed, apart("DATE", one, other), [BY_K])["answered"] == 2


def test_a_unit_that_could_be_read_as_another_is_refused(placed):
    with pytest.raises(InputError, match="cannot say whose a row is"):
        placed.opened(apart("TIMESTAMP", "'0044-03-15 (BC) 00:00:00'", "'0001-01-01'"))
