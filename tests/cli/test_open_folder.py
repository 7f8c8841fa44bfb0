"""A project that the command line made, opened in Python: its own budget, policy and ledger, for one analyst."""

import pytest
from tests.cli.tools import refused, well

import noisette as nz
from noisette.errors import BudgetError, InputError, PrivacyError

pytestmark = pytest.mark.slow

COUNT = "SELECT count(*) AS n FROM visits"


@pytest.fixture
def shared(opened):
    well("ledger", "share", "ana=0.25", "bob=0.5", "--why", "one pilot each")
    return opened


def test_the_folder_is_the_project(opened):
    well("ask", COUNT, "--spend", "0.1")
    for folder in (opened, str(opened), opened / ".noisette"):
        data = nz.open(folder)
        assert data.sql(COUNT, spend="0.1").record["ledger"]["entry"] == 3  # the answer that was paid for
        assert float(data.budget.spent.epsilon) == pytest.approx(0.1)
        data.ledger.close()


def test_one_analyst(shared):
    data = nz.open(shared, analyst="ana")
    assert list(data.budget.shares) == ["ana"]
    assert data.explain(COUNT, spend="0.1").prices.more == 2
    data.sql(COUNT, spend="0.2")
    with pytest.raises(BudgetError, match="share of ana"):
        data.sql("SELECT count(*) AS n FROM visits WHERE age > 40", spend="0.2")
    with pytest.raises(InputError, match="were opened for ana"):
        data.sql(COUNT, spend="0.2", analyst="bob")
    with pytest.raises(InputError, match="were opened for ana"):
        data.budget_of("bob")
    data.ledger.close()
    assert "ana" in well("ledger", "show")


def test_an_analyst_without_a_share_is_refused_before_anything(shared):
    with pytest.raises(PrivacyError, match="has no share"):
        nz.open(shared, analyst="carla")
    assert "carla" not in well("ledger", "show", "--json")


def test_options_beside_a_project_are_refused(opened):
    for option in ({"budget": 9}, {"unit": "patient_id"}, {"ledger": "other.sqlite"}, {"policy": "rules.toml"}):
        with pytest.raises(InputError, match="name nothing but analyst="):
            nz.open(opened, **option)


def test_a_folder_without_a_project(here):
    with pytest.raises(InputError, match=r"a directory without a project: name its files, such as visits/\*\.parquet"):
        nz.open(here, budget=1)
    assert "There is no project here" in refused(2, "budget")


def test_frames_have_an_analyst_too():
    import pyarrow

    data = nz.open(pyarrow.table({"age": [1, 2]}), budget=1, analyst="ana")
    data.sql("SELECT count(*) FROM data", spend="0.5")
    assert data.ledger.entries[-1].analyst == "ana"
