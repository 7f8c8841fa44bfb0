import os

import pytest
from tests.cli.tools import well, write_data


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with data, where the commands are run."""
    write_data(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def opened(here):
    """The same with a project."""
    well("open", "visits.parquet", "--policy", "rules.toml")
    return here


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """A project for all tests of a module that leave it as it is."""
    folder, before = tmp_path_factory.mktemp("one"), os.getcwd()
    write_data(folder)
    os.chdir(folder)
    well("open", "visits.parquet", "--policy", "rules.toml")
    os.chdir(before)
    return folder


@pytest.fixture
def settled(one, monkeypatch):
    """The same, where the commands are run."""
    monkeypatch.chdir(one)
    return one
