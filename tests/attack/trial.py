"""One question about two neighbouring worlds, and what must not differ between them.

The offers are alike; whether and how a question fails does not depend on the data; what the engine measures, before any
noise, moves by no more than the offer itself states; and neither plan nor answer takes time out of proportion.
"""

import gc
import itertools
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from tests.attack.questions import Question, consulted, streamed
from tests.attack.tables import Shelf, Storable
from tests.query.worlds import norms

from noisette.curator.asking import question_of
from noisette.engines.contract import Source
from noisette.errors import InputError
from noisette.privacy import Neighbours
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.design import Task
from noisette.query.measure import Exact, Measure, Request, sensitivity
from noisette.query.prepare import Prepared
from noisette.questions.above import Watching
from noisette.questions.cube import Counting
from noisette.questions.histogram import Adapted
from noisette.questions.left_out import Between
from noisette.questions.multiplicative_weights import Rounds
from noisette.questions.oracle import Consulting
from noisette.questions.parts.choice import Scores
from noisette.questions.parts.chosen_limits import Adaptive
from noisette.questions.parts.grouping_sets import GroupingSets
from noisette.questions.parts.linear_offer import Measured
from noisette.questions.parts.per_unit import UnitCells
from noisette.questions.stream import Publishing
from noisette.questions.workload import Answered
from noisette.releases.lattice import rolled_up

SECRET = bytes(range(16))
PLANNED, ANSWERED = 5, 20  # seconds of processor time: far more than any of these needs
SLOWER, SLOW = 20, 0.5  # a neighbour may take that many times as long, if it takes that many seconds at all

Twin = Callable[[Any], Any]  # from a source to one with a hole


class Convicted(AssertionError):  # noqa: N818
    """An attack that succeeded: which one, what was found, and on what."""

    def __init__(self, attack: str, found: str, *shown: object) -> None:
        super().__init__("\n".join([f"{attack}: {found}", *map(str, shown)]))
        self.attack, self.found = attack, found


class TooLong(BaseException):
    """Processor time is up; not an Exception, so that nothing on the way catches it."""


class Enough(BaseException):
    """The rows were seen; what an analyst's function makes of them is of no interest here."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Stop after that much processor time."""

    def stop(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


# What a source hands out


class Spy:
    """A source that remembers what it measured."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self.measured: dict[Request, Exact] = {}
        self.fetched: list[Any] = []
        self.plans: dict[Any, Spy] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    release = Source.release

    def aggregate(self, request: Request, schema: Any, secret: bytes) -> Exact:
        """Measure and remember."""
        self.measured[request] = self.source.aggregate(request, schema, secret)
        return self.measured[request]

    def rows(self, *asked: Any) -> Any:
        """Fetch rows and remember them; that is all."""
        self.fetched.append(self.source.rows(*asked))
        raise Enough


class Again:
    """A source that gives what a spy saw."""

    def __init__(self, spy: Spy) -> None:
        self.spy = spy

    release = Source.release

    def aggregate(self, request: Request, *_: Any) -> Exact:
        """What was measured before."""
        return self.spy.measured[request]


# What an offer states


def inside(value: Any, kinds: Any = Prepared | Task | Scores) -> Iterator[Any]:
    """All parts of an offer that say what one unit can move."""
    if isinstance(value, kinds):
        yield value
    if isinstance(value, Request | Prepared | Task | Exact):
        return
    if is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from inside(getattr(value, field.name), kinds)
    elif isinstance(value, tuple | list) and len(value) < 1000:
        for part in value:
            yield from inside(part, kinds)
    elif isinstance(value, dict):
        yield from inside(list(value.values()), kinds)


def stated(offer: Any, request: Request, measure: Measure, relation: Neighbours) -> Sensitivity | None:
    """The largest sensitivity that holds by what an offer says of a request; None if it says nothing of it."""
    procedure = offer.procedure
    if isinstance(procedure, Between) and isinstance(procedure.cells, UnitCells):  # see `_excess_of_numbers`
        return sensitivity(measure, procedure.prepared.part, relation)
    moved = getattr(procedure, "sensitivity", None)
    if isinstance(moved, Sensitivity) and getattr(getattr(procedure, "prepared", None), "request", None) == request:
        return moved
    plans = procedure.plans.values() if isinstance(procedure, Adaptive) else ()
    within = [one for plan in plans if (one := stated(plan, request, measure, relation)) is not None]
    if within:
        return min(within, key=lambda s: s.l1)
    found = [part.part for part in inside(offer) if isinstance(part, Prepared | Task) and part.request == request]
    return min((sensitivity(measure, part, relation) for part in found), key=lambda s: s.l1, default=None)


# Sensitivity


def aligned(before: Exact, after: Exact, at: int) -> tuple[Any, Any]:
    """A measure before and after with one place for each group; groups that are not there count 0."""
    if before.keys is None or after.keys is None:
        return before.measures[at], after.measures[at]
    places: dict[str, int] = {}
    pairs = []
    for exact in (before, after):
        names = [repr(tuple(row.values())) for row in exact.keys.to_pylist()]  # type: ignore[union-attr]
        if len(set(names)) < len(names):
            raise Convicted("sensitivity", "a group is there twice")
        pairs.append((names, exact.measures[at]))
        places |= {name: len(places) + i for i, name in enumerate(n for n in names if n not in places)}
    found = []
    for names, values in pairs:
        wide = np.zeros((len(places), *values.shape[1:]), object)
        for name, value in zip(names, values, strict=True):
            wide[places[name]] = value
        found.append(wide)
    return found[0], found[1]


def excess(offer: Any, before: Spy, after: Spy, relation: Neighbours) -> Iterator[str]:
    """Where what was measured moved by more than is stated."""
    for request in before.measured.keys() & after.measured.keys():
        pair = before.measured[request], after.measured[request]
        for at, measure in enumerate(request.measures):
            bound = stated(offer, request, measure, relation)
            if bound is None:
                yield f"nothing is stated of {measure.what}"
                continue
            one, other = (np.asarray(part)[None] for part in aligned(*pair, at))
            if not one.shape[1]:
                continue
            bounds = bound.l0, bound.l1, bound.l2_squared, bound.linf
            for norm, moved, most in zip(("l0", "l1", "l2^2", "linf"), norms(one, other), bounds, strict=True):
                if moved is not None and moved > most:
                    yield f"{measure.what} moved by {moved} in {norm}, stated {most}, {relation}"
    yield from _excess_of_scores(offer, before, after, relation)
    yield from _excess_of_numbers(offer, before, after, relation)
    yield from _excess_of_totals(offer, before, after, relation)
    yield from _excess_of_levels(offer, before, after, relation)
    yield from _excess_of_candidates(offer, before, after, relation)
    yield from _excess_of_rows(before, after, relation)
    for places in before.plans:
        plan = offer.procedure.plans[places]
        yield from excess(plan, before.plans[places], after.plans[places], relation)


def _excess_of_scores(offer: Any, before: Spy, after: Spy, relation: Neighbours) -> Iterator[str]:
    for scores in (part for part in inside(offer) if isinstance(part, Scores)):
        if not all(one.request in spy.measured for one in scores.prepared for spy in (before, after)):
            continue
        change = [b - a for a, b in zip(*(_scores(scores, spy) for spy in (before, after)), strict=True)]
        reach = scores.sensitivity(relation)
        if max(map(abs, change)) > reach.linf or sum(map(abs, change)) > reach.l1:
            yield f"scores moved by {change}, stated {reach.linf} each and {reach.l1} together, {relation}"
        if relation is Neighbours.ADD_REMOVE and scores.monotone and min(change) < 0 < max(change):
            yield f"scores that are said to move in one direction moved by {change}"


def _excess_of_numbers(offer: Any, before: Spy, after: Spy, relation: Neighbours) -> Iterator[str]:
    """Numbers that are made of what was measured, before they get noise: of cubes, and of what limits leave out."""
    known = before.measured.keys() & after.measured.keys()
    for part in (part for part in inside(offer, Counting | Between) if part.prepared.request in known):
        made, bound = (
            (part.cells.numbers, part.sensitivity) if isinstance(part, Between) else (part.measured, part.made.moved)
        )
        pair = (made(spy.measured[part.prepared.request]) for spy in (before, after))
        change = [Fraction(b) - Fraction(a) for a, b in zip(*(one.tolist() for one in pair), strict=True)]
        moved = {"l1": sum(map(abs, change)), "l2_squared": sum(x * x for x in change), "linf": max(map(abs, change))}
        for norm, most in ((norm, getattr(bound, norm)) for norm in moved):
            if moved[norm] > most:
                yield f"numbers moved by {float(moved[norm])} in {norm}, stated {float(most)}, {relation}"


def _excess_of_totals(offer: Any, before: Spy, after: Spy, relation: Neighbours) -> Iterator[str]:
    """Sums over the finest of several sets of groups, before they get noise."""
    for part in (part for part in inside(offer, GroupingSets) if part.finest is not None):
        request = part.finest.request
        if request not in before.measured or request not in after.measured:
            continue
        for (i, axes), at in itertools.product(enumerate(part.measured), range(len(request.measures))):
            pair = (rolled_up(spy.measured[request].measures[at], part._shape, axes)[None] for spy in (before, after))
            bound = sensitivity(request.measures[at], part.design.tasks[i].part, relation)
            bounds = bound.l0, bound.l1, bound.l2_squared, bound.linf
            for norm, moved, most in zip(("l0", "l1", "l2^2", "linf"), norms(*pair), bounds, strict=True):
                if moved is not None and moved > most:
                    yield f"a total moved by {moved} in {norm}, stated {most}, {relation}"


def _excess_of_levels(offer: Any, before: Spy, after: Spy, relation: Neighbours) -> Iterator[str]:
    """Whole numbers of a strategy, or of the nodes of a tree, before they get noise."""
    procedure = offer.procedure
    if not isinstance(procedure, Adapted | Measured | Answered):
        return
    if not all(procedure.prepared.request in spy.measured for spy in (before, after)):
        return
    counts = [procedure.cells.read(Again(spy), {}, SECRET) for spy in (before, after)]  # type: ignore[arg-type]
    if isinstance(procedure, Adapted):
        pairs, bounds = [procedure.tree.tree.sums(one) for one in counts], itertools.repeat(procedure.tree.moved)
    else:
        pairs, bounds = [procedure.made.strategy.measure(one) for one in counts], iter(procedure.made.moved)
    for one, other, bound in zip(*pairs, bounds, strict=False):
        change = np.abs(np.asarray(other, object) - np.asarray(one, object))
        for norm, moved, most in (
            ("l1", change.sum(), bound.l1),
            ("l2^2", (change**2).sum(), bound.l2_squared),
            ("linf", change.max(), bound.linf),
        ):
            if moved > most:
                yield f"a level of counts moved by {moved} in {norm}, stated {most}, {relation}"


def _excess_of_candidates(offer: Any, before: Spy, after: Spy, relation: Neighbours) -> Iterator[str]:
    """Queries and marginals of multiplicative weights, before they get noise, and the scores of a pick."""
    procedure = offer.procedure
    if not isinstance(procedure, Rounds):
        return
    made, pair = procedure.made, []
    for spy in (before, after):
        read = procedure.cells.read(Again(spy), {}, SECRET)  # type: ignore[arg-type]
        exact = made.candidates.answers(made.candidates.tables(*read))
        pair.append((exact, made._scores(exact, made.start(100))))
    (one, scores), (other, others) = pair
    changes = [b - a for a, b in zip(one, other, strict=True)]
    far = max(int(np.abs(change).sum() if made.candidates.marginals else np.abs(change).max()) for change in changes)
    squares = max(int((change**2).sum()) for change in changes) if made.candidates.marginals else far**2
    moved = int(np.abs(others - scores).max())
    if far > made.moved.l1 or squares > made.moved.l2_squared or moved > made.scored.linf:
        stated = f"{made.moved.l1} and {made.scored.linf}, {relation}"
        yield f"a candidate moved by {far} and a score by {moved}, stated {stated}"


def _scores(scores: Scores, spy: Spy) -> list[int]:
    return [int(value) for value in scores.read(Again(spy), {}, SECRET)]  # type: ignore[arg-type]


def _excess_of_rows(before: Spy, after: Spy, relation: Neighbours) -> Iterator[str]:
    """Rows that a function gets: those of one unit may differ, all others are as they were."""
    for one, other in zip(before.fetched, after.fetched, strict=True):
        a, b = owners(one), owners(other)
        gone, come = (a - b).total(), (b - a).total()
        most = 1 if relation is Neighbours.ADD_REMOVE else 2
        if gone + come > most or max(gone, come) > 1:
            yield f"the rows of {gone} units went and those of {come} came, {relation}"


def owners(rows: Any) -> Counter[Any]:
    """The rows of each unit, whatever its number; without a unit each row is one."""
    held: dict[Any, list[str]] = {}
    for i, row in enumerate(rows.to_pylist()):
        held.setdefault(row.pop("unit", i), []).append(repr(row))
    return Counter(tuple(sorted(mine)) for mine in held.values())


# A trial


def planned(curator: Any, question: Question, relation: Neighbours) -> tuple[Any, str | None]:
    """An offer, or why there is none."""
    try:
        with within(PLANNED):
            asked = question.built(curator)
            if hasattr(asked, "stream"):
                return asked.stream(curator.schema, question.spend, relation), None
            return question_of(asked, curator.schema).offer(curator.schema, question.spend, relation, 0.95), None
    except InputError as error:
        return None, str(error)
    except TooLong:
        raise Convicted("time", f"planning took more than {PLANNED} seconds") from None
    except Exception as error:
        raise Convicted("failure", f"planning raised {type(error).__name__}: {error}") from error


def drawn(curator: Any, offer: Any, twin: Twin) -> tuple[Spy, float]:
    """What was measured to draw an answer, and the processor time for it."""
    spy = Spy(twin(curator._source))
    gc.disable()  # a collection of all that a long run has made takes a second, whoever is answered
    begun = time.process_time()
    try:
        with within(ANSWERED):
            if isinstance(offer, Watching | Consulting | Publishing):
                _streamed(curator, offer, spy)
            else:
                offer.answers(offer.unpack(offer.pack(offer.draw(spy, curator.schema, SECRET))))
                _every_plan(curator, offer, spy)
    except Enough:
        pass
    except TooLong:
        raise Convicted("time", f"answering took more than {ANSWERED} seconds") from None
    except Exception as error:
        raise Convicted("failure", f"answering raised {type(error).__name__}: {error}") from error
    finally:
        taken = time.process_time() - begun
        gc.enable()
    return spy, taken


def _every_plan(curator: Any, offer: Any, spy: Spy) -> None:
    """Where a limit is chosen first, two neighbours may choose differently: each plan is carried out for both."""
    if isinstance(offer.procedure, Adaptive):
        for places, plan in offer.procedure.plans.items():
            spy.plans[places] = Spy(spy.source)
            plan.draw(spy.plans[places], offer.procedure.settled(curator.schema, places), SECRET)


def _streamed(curator: Any, offer: Watching | Consulting | Publishing, spy: Spy) -> None:
    if isinstance(offer, Publishing):
        for step in range(1, offer.asked.steps + 1):
            offer.exactly(curator.schema, step).draw(spy, curator.schema, SECRET)  # type: ignore[arg-type]
        return
    if isinstance(offer, Consulting):
        for query in consulted(offer):
            offer.counts(query).draw(spy, curator.schema, SECRET)  # type: ignore[arg-type]
        return
    try:
        for query in streamed(curator):
            offer.exactly(query, curator.schema).draw(spy, curator.schema, SECRET)
    except InputError:  # by what is declared: it names a column that cannot be asked for
        return


def asked(curators: tuple[Any, Any], question: Question, relation: Neighbours, twin: Twin) -> str:
    """Ask two neighbours; return "answered" or "refused"."""
    offers = [planned(curator, question, relation) for curator in curators]
    (offer, refused), (other, also) = offers
    if refused != also:
        raise Convicted("failure", f"refused for one of two neighbours alone: {refused!r} and {also!r}")
    if refused is not None:
        return "refused"
    said = [(o.text, repr(o.guarantee), o.parts, o.why) for o in (offer, other)]
    if said[0] != said[1]:
        raise Convicted("failure", "the offers of two neighbours differ")
    (before, one), (after, two) = (drawn(curator, offer, twin) for curator in curators)
    if isinstance(offer, Consulting):
        _consulted(offer, before, after)
    elif isinstance(offer, Publishing):
        _published(offer, before, after, relation)
    elif isinstance(offer, Watching):
        _watched(offer, before, after, relation)
    else:
        for found in excess(offer, before, after, relation):
            raise Convicted("sensitivity", found)
    if max(one, two) > max(SLOW, SLOWER * min(one, two)):
        again = [min(drawn(curator, offer, twin)[1] for _ in range(5)) for curator in curators]
        if max(again) > max(SLOW, SLOWER * min(again)):
            raise Convicted("time", f"answering takes {again[0]:.2f} and {again[1]:.2f} seconds for two neighbours")
    return "answered"


def _watched(offer: Watching, before: Spy, after: Spy, relation: Neighbours) -> None:
    """Each answer of a stream moves by no more than it was begun for, and upwards only if it is of counts."""
    for request in before.measured.keys() & after.measured.keys():
        change = int(after.measured[request].measures[0][0]) - int(before.measured[request].measures[0][0])
        size = abs(change) * request.measures[0].grid
        up = change > 0 and offer.above.of == "counts" and relation is Neighbours.ADD_REMOVE  # the victim left
        if size > offer.above.sensitivity or up:
            raise Convicted("sensitivity", f"an answer of a stream moved by {change}, stated {offer.above.sensitivity}")


def _published(offer: Publishing, before: Spy, after: Spy, relation: Neighbours) -> None:
    """What there is so far of each group moves by no more than was stated, in as many groups as were."""
    who = offer.who
    for request in before.measured.keys() & after.measured.keys():
        tables = [_by_key(spy.measured[request]) for spy in (before, after)]
        keys = sorted(set().union(*tables), key=repr)
        for place, most in enumerate((who.events, who.taken)[: len(request.measures)]):
            one, two = ([table.get(key, (0, 0))[place] for key in keys] for table in tables)
            moved = np.subtract(two, one)
            gone, come = int(np.maximum(-moved, 0).sum()), int(np.maximum(moved, 0).sum())
            worst = max(gone, come) if relation is Neighbours.REPLACE else gone + come
            if int(np.abs(moved).max(initial=0)) > most or worst > most * who.groups:
                stated = f"{most} in each of {who.groups} groups, {relation}"
                raise Convicted("sensitivity", f"what there is so far moved by {moved.tolist()}, stated {stated}")


def _by_key(found: Any) -> dict[Any, tuple[int, ...]]:
    """Numbers by their key, or by their place where all keys are declared."""
    keys = range(len(found.measures[0])) if found.keys is None else found.keys.column(0).to_pylist()
    return dict(zip(keys, zip(*(m.tolist() for m in found.measures), strict=True), strict=True))


def _consulted(offer: Consulting, before: Spy, after: Spy) -> None:
    """Each answer of an oracle, and the number of rows, moves by no more than it was begun for."""
    for query in consulted(offer):
        counts = offer.counts(query)
        pair = [counts.draw(Again(spy), {}, SECRET)[1:] for spy in (before, after)]  # type: ignore[arg-type]
        moved = max(abs(b - a) for a, b in zip(*pair, strict=True))
        if moved > offer.sensitivity.linf:
            raise Convicted("sensitivity", f"an answer of an oracle moved by {moved}, stated {offer.sensitivity.linf}")


def innocent(source: Any) -> Any:
    """The source itself."""
    return source


def attacked(shelf: Shelf, world: Storable, questions: list[Question], twin: Twin = innocent) -> Counter[str]:
    """All questions of all neighbours of a world; how many there were, or the smallest example that convicts."""
    tally: Counter[str] = Counter(worlds=1)
    curators = opened(shelf, world)
    if curators is None:
        return tally + Counter(refused_by_open=1)
    for question in questions:
        for relation, pair in curators.items():
            try:
                outcome = asked(pair, question, relation, twin)
            except Convicted as found:
                raise (smallest(shelf, world, question, relation, twin, found) if shelf.shrinks else found) from None
            tally += Counter({"questions": 1, outcome: 1, str(relation): 1})
    return tally


def opened(shelf: Shelf, world: Storable) -> dict[Neighbours, tuple[Any, Any]] | None:
    """Curators of a world and of each neighbour; None where the owner is told to mend something."""
    try:
        first = shelf.opened(world)
        found = {relation: (first, shelf.opened(other)) for relation, other in world.neighbours().items()}
    except InputError:
        return None
    for _, other in found.values():
        if other.schema != first.schema:
            raise Convicted("failure", "what analysts see of the tables depends on a row", world)
    return found


# The smallest example


def smallest(
    shelf: Shelf,
    world: Storable,
    question: Question,
    relation: Neighbours,
    twin: Twin,
    found: Convicted,
    tries: int = 100,
) -> Convicted:
    """The same conviction on fewer rows, plainer values and a shorter question."""
    left, smaller = tries, True
    while smaller and left > 0:
        smaller = False
        for less, shorter in _less(world, question):
            left -= 1
            again = _convicts(shelf, less, shorter, relation, twin, found.attack)
            if again is not None:
                world, question, found, smaller = less, shorter, again, True
                break
            if left <= 0:
                break
    return Convicted(found.attack, found.found, f"question: {question}", f"spend: {question.spend}", world)


def _convicts(
    shelf: Shelf, world: Storable, question: Question, relation: Neighbours, twin: Twin, attack: str
) -> Convicted | None:
    try:
        pair = shelf.opened(world), shelf.opened(world.neighbours()[relation])
        asked(pair, question, relation, twin)
    except Convicted as found:
        return found if found.attack == attack else None
    except Exception:  # a world that cannot be stored
        return None
    return None


def _less(world: Any, question: Question) -> Iterator[tuple[Any, Question]]:
    for shorter in question.smaller():
        yield world, shorter
    for less in world.smaller(str(question)):
        yield less, question
