"""Many who ask at once, forks, kills, replays and tampering: whatever happens, no more is answered than was paid for.

    python -m tests.attack.ledgers fork                   children of a process with its ledger in memory, and of a twin
    python -m tests.attack.ledgers crowd|die|ask FOLDER   a process that asks about the data of a folder

Races, kills and forgeries of the ledger alone are in tests/ledger, from where the twins and the forger's tools
come; here it is whole curators that ask.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
from tests.attack.attacks import marked
from tests.attack.tables import Shelf
from tests.attack.trial import Convicted
from tests.attack.twins import Forgetful
from tests.ledger.tools import tamper

import noisette as nz
from noisette import dbapi
from noisette.curator.described import described_data
from noisette.engines.contract import Source
from noisette.errors import BudgetError, NoisetteError, PrivacyError
from noisette.ledger import Book, Memory, open_ledger
from noisette.process import here
from noisette.query.measure import Exact

ROOT = Path(__file__).resolve().parents[2]
ASKERS, EACH, AFFORDABLE = 4, 3, 5
PROCESSES = 2  # which take a second each to begin
COST = nz.Pure(f"1/{AFFORDABLE}")
ONE = "SELECT COUNT(*) AS n FROM v"

Opens = Callable[[str], Book]


class Constant:
    """A source that needs no engine, so that a forked child can ask it."""

    release = Source.release

    def aggregate(self, request: Any, *_: Any) -> Exact:
        """Nothing, of whatever is asked for."""
        return Exact(None, tuple(np.zeros(1, np.int64) for _ in request.measures))


def world(shelf: Shelf) -> Any:
    """Data that are described, and wait for a curator."""
    made = marked()
    return described_data(shelf.source(made), budget=nz.Pure(1), policy=made.policy)


def answered(curator: Any, who: int, begin: Callable[[], object] = int) -> int:
    """How many questions of its own one asker gets answered; `begin` is called before each."""
    found = 0
    for i in range(EACH):
        begin()
        try:
            curator.sql(f"SELECT COUNT(*) AS n FROM v WHERE k = {EACH * who + i}", spend=COST)
        except BudgetError:
            continue
        except NoisetteError:  # it was charged for: an overdrawn ledger cannot say what is left
            pass
        found += 1
    return found


# At once


def threads(shelf: Shelf, place: Path, opens: Opens = open_ledger) -> Counter[str]:
    """Threads with curators of their own and one ledger."""
    data, where = world(shelf), str(place / "threads.ledger")
    open_ledger(where, budget=nz.Pure(1)).close()
    together, found = threading.Barrier(ASKERS, timeout=60), []

    def asker(who: int) -> None:
        curator = data.curator(opens(where))
        curator._source = Constant()
        found.append(answered(curator, who, together.wait))
        curator.ledger.close()

    running = [threading.Thread(target=asker, args=(who,)) for who in range(ASKERS)]
    for one in running:
        one.start()
    for one in running:
        one.join()
    return _affordable(sum(found), AFFORDABLE)


def _affordable(answers: int, most: int) -> Counter[str]:
    if answers != most:
        raise Convicted("ledger", f"{answers} answers on a budget for {most}")
    return Counter(worlds=1, questions=ASKERS * EACH, answered=answers)


def children(ledger: Any) -> int:
    """How many children of this process spend a whole budget that is in its memory."""
    with tempfile.TemporaryDirectory() as folder:
        curator = world(Shelf(Path(folder))).curator(ledger)
    curator._source = Constant()
    read, write = os.pipe()
    for _ in range(ASKERS):
        child = os.fork()
        if not child:
            if isinstance(ledger, Forgetful):
                curator._process = here()  # so does the curator
            with contextlib.suppress(NoisetteError):
                curator.sql(ONE, spend=1)
                os.write(write, b".")
            os._exit(0)
        os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read) as pipe:
        return len(pipe.read())


def connections(place: Path, connects: Callable[..., Any] = dbapi.connect) -> Counter[str]:
    """Connect to a file again and again, as a pool does, without a ledger and with one: all have one budget."""
    data = str(place / "v.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"k": range(20)}), data)
    for named in ({}, {"ledger": str(place / "connected.ledger")}):
        found = sum(_connected(connects, data, named, who) for who in range(ASKERS))
        if found > len(named):
            raise Convicted("ledger", f"{found} connections to the same data, {named}, each spent the whole budget")
    return Counter(worlds=1, questions=2 * ASKERS, answered=1)


def _connected(connects: Callable[..., Any], data: str, named: dict[str, str], who: int) -> int:
    try:
        with connects(data, budget=1, spend=1, **named) as connection:
            return int(connection.execute(f"SELECT count(*) FROM v WHERE k >= {who}").rowcount)
    except dbapi.DatabaseError:
        return 0


def forks(which: str = "memory") -> Counter[str]:
    """Fork a process whose ledger is in memory, or a forgetful twin of it: all children together may spend it once."""
    found = json.loads(_process("fork"))[which]
    if found > 1:
        raise Convicted("ledger", f"{found} children of one process spent the same budget, which lives in its memory")
    return Counter(worlds=1, questions=ASKERS, answered=found)


def processes(place: Path) -> Counter[str]:
    """Processes with one ledger on disk."""
    prepared(place)
    command = [sys.executable, "-m", "tests.attack.ledgers", "crowd", str(place)]
    running = [
        subprocess.Popen([*command, str(who)], stdout=subprocess.PIPE, text=True, cwd=ROOT) for who in range(PROCESSES)
    ]
    return _affordable(sum(int(one.communicate(timeout=300)[0]) for one in running), AFFORDABLE)


def _process(*what: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.attack.ledgers", *what], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == code, done.stderr
    return done.stdout


# Again


def prepared(place: Path) -> None:
    """A file with data, and what is declared of it."""
    made = marked(storage="duckdb")
    (place / "policy.json").write_text(json.dumps(made.policy))
    Shelf(place).source(made)


def curator_of(place: Path, opens: Opens = open_ledger) -> Any:
    """A curator of the folder's data and ledger, as every process opens it."""
    policy = json.loads((place / "policy.json").read_text())
    found = described_data(place / "1" / "world.duckdb", budget=nz.Pure(1), policy=policy)
    where = str(place / "a.ledger")
    open_ledger(where, budget=found.policy.budget, data=found.fingerprints).close()
    return found.curator(opens(where), secret=bytes(16))


class Killed(BaseException):
    """As good as dead."""


def replays(place: Path, opens: Opens = open_ledger, *, kill: bool = False) -> Counter[str]:
    """Die between charge and answer, then ask again, twice: one charge, and one answer for ever."""
    prepared(place)
    if kill:
        _process("die", str(place), code=-signal.SIGKILL)
        answers = [json.loads(_process("ask", str(place))) for _ in range(2)]
    else:
        curator = curator_of(place, opens)
        curator.ledger._step = _dies
        with contextlib.suppress(Killed):
            curator.sql(ONE, spend="1/4")
        answers = [curator_of(place, opens).sql(ONE, spend="1/4").rows() for _ in range(2)]
    ledger = open_ledger(place / "a.ledger")
    charges = len(ledger.entries)
    ledger.close()
    if charges != 1 or answers[0] != answers[1]:
        raise Convicted("ledger", f"after a kill there are {charges} charges, and answers {answers}")
    return Counter(worlds=1, questions=3, answered=2)


def _dies(step: str) -> None:
    if step == "committed":  # the charge is there, nothing is drawn
        raise Killed


# Forgeries

FORGERIES = {
    "a charge is gone": "DELETE FROM ledger_entries WHERE number = 2",
    "a charge is smaller": "UPDATE ledger_entries SET body = replace(body, '1/4', '1/9') WHERE number = 2",
    "an answer is another one": "UPDATE ledger_answers SET body = x'00'",
    "sums are smaller": "UPDATE ledger_accounts SET state = replace(state, '1/4', '1/9')",
    "the head is another one": "UPDATE ledger_head SET number = 1",
}


def forged(place: Path, forgery: str, opens: Opens = open_ledger) -> Counter[str]:
    """Ask, change the ledger behind its back, and ask something else: that must be refused."""
    prepared(place)
    curator = curator_of(place, opens)
    curator.sql(ONE, spend="1/4")
    curator.ledger.close()
    where = str(place / "a.ledger")
    tamper(where, FORGERIES[forgery])
    try:
        ledger = opens(where)
        spent, entries = ledger.spent, len(ledger.entries)
        ledger.close()
    except PrivacyError:
        return Counter(worlds=1, questions=1, answered=1)
    raise Convicted("ledger", f"{forgery}, and it opens, with {spent} spent by {entries} charges")


def main(what: str, *arguments: str) -> None:
    """One process of an attack."""
    if what == "fork":
        print(json.dumps({"memory": children(Memory(nz.Pure(1))), "forgetful": children(Forgetful(nz.Pure(1)))}))
        return
    curator = curator_of(Path(arguments[0]))
    if what == "crowd":
        print(answered(curator, int(arguments[1])))
        return
    if what == "die":
        curator.ledger._step = lambda step: os.kill(os.getpid(), signal.SIGKILL) if step == "committed" else None
    print(json.dumps(curator.sql(ONE, spend="1/4").rows()))


if __name__ == "__main__":
    main(*sys.argv[1:])
