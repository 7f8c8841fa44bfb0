"""Whether and how a question fails must not depend on the data, and a question that failed once has failed for ever."""

import contextlib
import os
import resource
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.attack.attacks import BY_TEXT, COUNT, marked
from tests.attack.ledgers import ONE, curator_of, prepared
from tests.attack.questions import Question
from tests.attack.tables import Shelf, World
from tests.attack.trial import Convicted, Twin, innocent

import noisette as nz
from noisette.engines.contract import Source
from noisette.errors import NoisetteError
from noisette.ledger import open_ledger

SPEND = nz.Approx(1, "1e-6")
ASKED = [
    COUNT,
    BY_TEXT,
    Question(keys=("v.g", "v.k"), aggregates=("COUNT(*)", "SUM(v.x)")),
    Question(where=("v.g LIKE 'c%'",), keys=("LOWER(v.g)",), aggregates=("AVG(v.k)", "MAX(v.k)")),
    Question(keys=("YEAR(v.d)",), aggregates=("COUNT(DISTINCT v.g)",)),
    *(Question(python=f"nz.{text}") for text in ('Mode("g")', 'Top("g", 2)', 'Spread("k")', 'Centre("x", width=1)')),
    *(Question(python=f"nz.{text}") for text in ('TrimmedMean("x", trim=1)', 'OrderStatistic("k")')),
    Question(python='nz.Choose([0, 1], score=lambda c: f"SELECT SUM(k) FROM v WHERE k = {c}")'),
]


def outcome(act: Callable[[], Any]) -> tuple[str, ...]:
    """What an analyst can tell apart: the error in its words, or the columns of an answer with their types."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = act()
        except Exception as error:
            return type(error).__name__, str(error)
    return (
        "answered",
        *(f"{column.name} {column.values.type}" for column in found.columns),
        *(str(w.message) for w in caught),
    )


def oracles(seed: int, shelf: Shelf, twin: Twin = innocent) -> Counter[str]:
    """Explain, ask and ask again, of neighbours: words and columns are alike, and a repeated answer is the same."""
    world: World = marked(storage=("arrow", "parquet", "duckdb")[seed % 3])
    for relation, other in world.neighbours().items():
        pair = [shelf.opened(one) for one in (world, other)]
        for curator in pair:
            curator._source = twin(curator._source)
        for question in ASKED:
            seen = [_seen(curator, question) for curator in pair]
            if seen[0] != seen[1]:
                raise Convicted("failure", f"neighbours differ, {relation}: {seen}", f"question: {question}", world)
    return Counter(worlds=1, questions=2 * len(ASKED), answered=2 * len(ASKED))


def _seen(curator: Any, question: Question) -> tuple[Any, ...]:
    asked = question.built(curator)
    explained = repr(curator.explain(asked, spend=SPEND))
    first, rows = _answer(curator, asked)
    again, same = _answer(curator, asked)
    if (first, rows) != (again, same):
        raise Convicted(
            "failure", f"asked again, there is another answer: {first} and {again}", f"question: {question}"
        )
    return explained, first


def _answer(curator: Any, asked: Any) -> tuple[tuple[str, ...], str]:
    held: list[Any] = []

    def act() -> Any:
        held.append(curator.ask(asked, spend=SPEND))
        return held[0]

    return outcome(act), repr([one.rows() for one in held])


# A question that failed


class Broken:
    """A source that fails, or did: what it says is the engine's own."""

    def __init__(self, source: Any, times: int) -> None:
        self.source, self.left = source, times

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    release = Source.release

    def aggregate(self, *asked: Any) -> Any:
        """Fail as often as said, then measure."""
        self.left -= 1
        if self.left >= 0:
            raise NoisetteError("The engine could not compute this.")
        return self.source.aggregate(*asked)


def failed(place: Path, opens: Callable[..., Any] = open_ledger, *, anew: bool = True) -> Counter[str]:
    """An engine that fails once: whoever asks again, in this process or in a new one, gets what the first one got."""
    prepared(place)
    curator = curator_of(place, opens)
    curator._source = Broken(curator._source, 1)
    first = outcome(lambda: curator.sql(ONE, spend="1/4"))
    curators = [curator_of(place, opens) if anew else curator for _ in range(2)]
    later = [outcome(lambda one=one: one.sql(ONE, spend="1/4")) for one in curators]
    charges = len(curator.ledger.entries)
    if any(one != first for one in later) or charges != 1:
        raise Convicted("failure", f"first {first}, asked again {later}, with {charges} charges")
    return Counter(worlds=1, questions=3)


def failed_in_memory(curator: Any) -> Counter[str]:
    """The same with a ledger that lives in memory."""
    curator._source = Broken(curator._source, 1)
    first, later = (outcome(lambda: curator.sql(ONE, spend="1/4")) for _ in range(2))
    if first != later or len(curator.ledger.entries) != 1:
        raise Convicted("failure", f"first {first}, asked again {later}, with {len(curator.ledger.entries)} charges")
    return Counter(worlds=1, questions=2)


# Plans

SPENDS = [nz.Approx(e, d) for e, d in (("1e-6", "1e-12"), ("1e-3", "1e-30"), (1000, "1e-9"), (100_000, "1e-9"))] + [
    nz.ZCDP(10**4),
    nz.Pure("1e-9"),
]
MOST = 5  # seconds of processor time for a plan; one second is what is promised, on a machine that does nothing else


def plans(shelf: Shelf, questions: list[Question], spends: list[Any], most: int = MOST) -> Counter[str]:
    """A plan is made soon, however little or much is spent, or it is refused."""
    curator = shelf.opened(marked(), budget=nz.Approx(10**6, "1/2"))
    for question in questions:
        for spend in spends:
            if not _soon(curator, question, spend, most):
                raise Convicted("time", f"a plan takes more than {most} seconds", f"{question} for {spend}")
    return Counter(worlds=1, questions=len(questions) * len(spends))


def _soon(curator: Any, question: Question, spend: Any, most: int) -> bool:
    """Whether a child of this process has a plan within that much processor time; the system ends it if it has not."""
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (most, most))
        with contextlib.suppress(NoisetteError):
            curator.explain(question.built(curator), spend=spend)
        os._exit(0)
    return not os.WIFSIGNALED(os.waitpid(child, 0)[1])
