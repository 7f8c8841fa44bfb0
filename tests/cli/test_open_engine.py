"""A project whose data are read by Spark: one folder, one budget, the same commands."""

import json

import pytest
from tests.cli.tools import COUNT, refused, well

import noisette as nz

UNKNOWN = "SELECT note, count(*) AS n FROM visits GROUP BY note"


@pytest.fixture
def open_there(here, sail, connect):
    """The data opened through a server of Spark Connect."""
    return ("open", f"visits={here / 'visits.parquet'}", "--engine", connect, "--policy", "rules.toml")


@pytest.mark.slow
def test_a_project_on_a_server_is_asked_as_any_other(here, open_there, connect):
    well(*open_there)
    said = json.loads((here / ".noisette" / "project.json").read_text())
    assert said["data"] == {"visits": f"{connect}#{here / 'visits.parquet'}"}
    first = well("ask", COUNT, "--spend", "0.5", "--json")
    assert well("ask", COUNT, "--spend", "0.5", "--json") == first
    assert json.loads(well("budget", "--json"))["charges"] == 1
    data = nz.open(here)
    assert [row["ward"] for row in data.sql(COUNT, spend="0.5").to_arrow().to_pylist()][:2] == ["north", "south"]
    data.ledger.close()


@pytest.mark.slow
def test_a_folder_that_is_not_committed_to_is_refused_at_once(here, open_there):
    """This server leaves no mark of what is whole: a question would be charged and never finished."""
    (here / "shared").mkdir()
    assert "does not arrive here" in refused(2, *open_there, "--scratch", here / "shared")
    assert list((here / "shared").iterdir()) == []
    assert not (here / ".noisette").exists()


@pytest.mark.slow
def test_executors_noise_unknown_keys_where_they_share_a_folder(here, spark):
    (here / "shared").mkdir()
    shared = ("--engine", "local[2]", "--scratch", here / "shared")
    well("open", "visits=visits.parquet", *shared, "--policy", "rules.toml")
    assert json.loads((here / ".noisette" / "project.json").read_text())["scratch"] == str(here / "shared")
    well("ask", UNKNOWN, "--spend", "1,1e-7")
    assert list((here / "shared").iterdir()) == []


def test_one_address_for_all_and_no_secrets_in_it(here):
    two = refused(2, "open", "a=sc://one#v", "b=sc://two#v", "--budget", "1")
    assert "one Spark server" in two
    assert "token out" in refused(2, "open", "v=sc://one/;token=abc#v", "--budget", "1")
    assert "An engine is an address" in refused(2, "open", "visits.parquet", "--engine", "duck", "--budget", "1")
    assert "scratch folder" in refused(2, "open", "visits.parquet", "--scratch", ".", "--budget", "1")
    assert "cannot be reached" in refused(2, "open", "v", "--engine", "sc://127.0.0.1:1", "--budget", "1")
    assert not (here / ".noisette").exists()
