"""However many ask, fork, die, replay or forge: no more is answered than was paid for, and it is answered once."""

import pytest
from tests.attack import ledgers, twins
from tests.attack.trial import Convicted
from tests.ledger.twins import opened

import noisette as nz
from noisette.dbapi import connect
from noisette.ledger import open_ledger

slow = pytest.mark.slow


def test_threads_that_ask_at_once(shelf, tmp_path):
    assert ledgers.threads(shelf, tmp_path)["answered"] == ledgers.AFFORDABLE


@pytest.mark.slow
def test_a_twin_that_decides_outside_its_transaction_is_convicted(shelf, tmp_path):
    """Within a few tries: several look before any of them has written."""

    def tries():
        for i in range(20):
            (tmp_path / str(i)).mkdir()
            ledgers.threads(shelf, tmp_path / str(i), lambda where: opened(where, "outside"))

    with pytest.raises(Convicted, match="answers on a budget for 5"):
        tries()


@slow
def test_processes_that_ask_at_once(tmp_path):
    assert ledgers.processes(tmp_path)["answered"] == ledgers.AFFORDABLE


@slow
def test_children_of_a_process_share_one_budget():
    assert ledgers.forks()["answered"] <= 1


@slow
def test_a_ledger_that_forgets_its_process_is_convicted():
    with pytest.raises(Convicted, match="4 children of one process spent the same budget"):
        ledgers.forks("forgetful")


def test_connections_to_the_same_data_share_one_budget(tmp_path):
    assert ledgers.connections(tmp_path)["answered"] == 1


def test_connections_that_each_begin_a_ledger_in_memory_are_convicted(tmp_path):
    def fresh(source, *, spend, **opening):
        return connect(nz.open(source, **opening), spend=spend)

    with pytest.raises(Convicted, match=r"4 connections to the same data, \{\}, each spent"):
        ledgers.connections(tmp_path, fresh)


@pytest.mark.slow
def test_a_replay_is_free_and_identical(tmp_path):
    assert ledgers.replays(tmp_path)["answered"] == 2


@slow
def test_also_after_a_real_kill(tmp_path):
    assert ledgers.replays(tmp_path, kill=True)["answered"] == 2


@pytest.mark.slow
def test_a_ledger_that_forgets_its_answers_is_convicted(tmp_path):
    with pytest.raises(Convicted, match="3 charges"):
        ledgers.replays(tmp_path, lambda where: twins.Amnesiac(open_ledger(where)._store))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("forgery", ledgers.FORGERIES)
def test_a_forgery_is_found(tmp_path, forgery):
    assert ledgers.forged(tmp_path, forgery)["answered"] == 1


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("forgery", ledgers.FORGERIES)
def test_a_ledger_that_does_not_look_is_convicted(tmp_path, forgery):
    with pytest.raises(Convicted, match="and it opens"):
        ledgers.forged(tmp_path, forgery, twins.gullible)
