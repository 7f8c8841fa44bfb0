"""A holdout in a ledger: charged once, goes on after restarts and kills, and with no other data."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import noisette as nz
from noisette.errors import BudgetError, InputError, PrivacyError
from noisette.ledger import open_ledger

ROOT = Path(__file__).resolve().parents[2]
N = 2000
X, Y = np.arange(2 * N) % 2, np.arange(2 * N) % 4 < 2
SETS = X[::2], Y[::2], X[1::2], Y[1::2]  # all 0 and all 1

CHILD = """
import json, os, signal, sys
import numpy as np
import noisette as nz
X, Y = np.arange(4000) % 2, np.arange(4000) % 4 < 2
holdout = nz.open_holdout(X[::2], Y[::2], X[1::2], Y[1::2], ledger=sys.argv[1], budget=3, spend=20)
if sys.argv[2] == "die":
    book = holdout._line._line._ledger
    book._step = lambda step: os.kill(os.getpid(), signal.SIGKILL) if step == "kept" else None
answer = holdout.ask(lambda x, y: x)
print(json.dumps([answer.source, answer.left]))
"""


def opened(where, **options):
    return nz.open_holdout(*SETS, ledger=where, **({"budget": 3, "spend": 20} | options))


def elsewhere(where, what):
    return subprocess.run(
        [sys.executable, "-c", CHILD, str(where), what], cwd=ROOT, capture_output=True, text=True, timeout=120
    )


@pytest.fixture
def where(tmp_path):
    return tmp_path / "holdout.db"


def entries(where):
    return open_ledger(where).entries


@pytest.mark.slow
def test_it_is_charged_once_and_goes_on(where):
    assert opened(where).ask(lambda x, y: x).left == 2
    again = opened(where)
    assert again.left == 2
    assert again.ask(lambda x, y: y).source == "training set"
    assert again.ask(lambda x, y: x).left == 1
    assert len(entries(where)) == 1
    assert float(entries(where)[0].guarantee.epsilon) == pytest.approx(20)
    assert (where.parent / "holdout.db.secret").stat().st_mode & 0o777 == 0o600


def test_two_that_are_open_share_one_budget(where):
    one, two = opened(where), opened(where)
    assert [each.ask(lambda x, y: x).left for each in (one, two, one)] == [2, 1, 0]
    for each in (one, two, opened(where)):
        with pytest.raises(BudgetError, match="locked"):
            each.ask(lambda x, y: x)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("spend", ["1,1e-6", 1, "rho=0.1"])
@pytest.mark.parametrize("method", ["sparse vector", "published"])
@pytest.mark.parametrize("budget", [2, 12])
def test_every_promise_can_be_charged_and_read_again(where, spend, method, budget):
    first = opened(where, spend=spend, method=method, budget=budget, threshold="0.3")
    assert opened(where, spend=spend, method=method, budget=budget, threshold="0.3").mechanism == first.mechanism
    [entry] = entries(where)
    assert entry.guarantee.neighbours is nz.Neighbours.REPLACE


@pytest.mark.slow
def test_a_kill_loses_at_most_the_answer_that_was_about_to_be_released(where):
    assert opened(where).left == 3
    assert elsewhere(where, "die").returncode == -9
    assert opened(where).left == 2
    told = elsewhere(where, "ask")
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout) == ["holdout", 1]
    assert opened(where).left == 1
    assert len(entries(where)) == 1


def test_other_data_another_price_and_a_lost_ledger_are_refused(where):
    opened(where).ask(lambda x, y: x)
    with pytest.raises(PrivacyError, match="data changed"):
        nz.open_holdout(1 - SETS[0], *SETS[1:], ledger=where, budget=3, spend=20)
    with pytest.raises(InputError, match="another budget"):
        opened(where, spend=21)
    with pytest.raises(BudgetError):
        opened(where, budget=4)
    where.unlink()
    with pytest.raises(PrivacyError, match="not here"):
        opened(where)
    assert opened(where, start_over="a test").left == 3


def test_states_are_sealed_with_a_secret(where):
    opened(where)
    secret = where.parent / "holdout.db.secret"
    assert len(secret.read_bytes()) == 32
    secret.write_bytes(b"short")
    with pytest.raises(PrivacyError, match="secret beside the ledger"):
        opened(where)


@pytest.mark.parametrize("bad", ["postgresql://x/y", 3, "nowhere/at/all/holdout.db"])
def test_a_ledger_is_a_file(bad):
    with pytest.raises(InputError):
        opened(bad)


def test_a_leaderboard_goes_on_with_its_best(where):
    def board():
        return nz.open_leaderboard(SETS[1], ledger=where, budget=2, spend=20, start="0.6", step="0.05")

    first = board().submit("eighty", np.where(np.arange(N) < 0.8 * N, SETS[1], ~SETS[1]))
    assert (first.leads, first.left) == (True, 1)
    again = board()
    assert not again.submit("seventy", np.where(np.arange(N) < 0.7 * N, SETS[1], ~SETS[1])).leads
    assert again.submit("all", SETS[1]).leads
    assert len(entries(where)) == 1
