"""A rule against small differences of filters: a house rule, and no protection by itself.

Two questions about the same rows and keys whose conditions differ by one, and whose noisy numbers of units in a group
differ by less than the policy allows: the group of the later question is suppressed. Noise protects people with or
without this rule. It reads question texts and numbers that the ledger has kept as released, nothing else, so it is
post-processing; two conditions that differ, or conditions written in another way, are beyond it.

Which questions were earlier is decided once, when a question's own numbers are kept: all those whose numbers are kept
by then. The ledger keeps the decision, so that an answer stays what it is. Of two questions that run at the same time,
the one whose numbers are kept last reads those of the other; if both are kept before either decides, both decide so.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from noisette.errors import PrivacyError
from noisette.exact.number import whole_of
from noisette.ledger import Ledger
from noisette.query.draw import Counts, Noised, kept_counts
from noisette.query.measure import Measure
from noisette.questions.contract import Procedure
from noisette.questions.parts.chosen_limits import Adaptive, drawn_within
from noisette.questions.parts.queries import Measuring, measuring

__all__ = ["without_small_differences"]


def without_small_differences(ledger: Ledger, asked: Procedure, key: str, drawn: Any, least: int) -> Any:
    """What was drawn, without the groups that differ by fewer than `least` units from an earlier question's."""
    named = measuring(asked)
    if named is None:
        return drawn
    texts = {place: question.text for question, place in zip(named.prepared, named.places, strict=True)}
    near = _decided(ledger, key, texts)
    if isinstance(asked, Adaptive):
        return asked.within(drawn, lambda plan, inner: _without(ledger, plan, inner, near, least))
    return _without(ledger, named, drawn, near, least)


def _without(
    ledger: Ledger, asked: Measuring, drawn: Sequence[Noised], near: Mapping[int, list[tuple[str, int]]], least: int
) -> tuple[Noised, ...]:
    found = []
    for place, (task, noised) in enumerate(zip(asked.design.tasks, drawn, strict=True)):
        units = task.members or task.deciding
        assert units is not None
        hidden = np.zeros(noised.size, bool)
        for other, at in near.get(place, ()):
            counts = _counts(ledger, other, at)
            hidden |= noised.counts(units).close_to(counts, least) if counts is not None else False
        found.append(noised.without(hidden) if hidden.any() else noised)
    return tuple(found)


def _decided(ledger: Ledger, key: str, texts: Mapping[int, str]) -> dict[int, list[tuple[str, int]]]:
    """The questions that are near each task and were kept before this was decided; the first decision holds."""
    if (kept := ledger.latest(key)) is None:
        near = [[place, *other] for place, text in texts.items() for other in _near(text, ledger, key)]
        ledger.advance(key, 0, json.dumps(near).encode())
        kept = ledger.latest(key)
        assert kept is not None
    found: dict[int, list[tuple[str, int]]] = {}
    try:
        for place, other, at in json.loads(kept[1]):
            found.setdefault(whole_of(place, "place"), []).append((str(other), whole_of(at, "at")))
    except (ValueError, TypeError):
        raise PrivacyError("The stored answer to this question was changed: restore a backup of the ledger.") from None
    return found


def _near(text: str, ledger: Ledger, own: str) -> Iterator[tuple[str, int]]:
    """The other questions whose numbers are kept, each with its task, that differ from this text by one condition."""
    frame, conditions = _parts(text)
    asked = {entry.key: entry.question for entry in ledger.entries if entry.key not in (None, own)}
    for key, question in asked.items():
        for at, (other, others) in enumerate(_frames(question)):
            if frame == other and len(conditions ^ others) == 1 and key and ledger.answer(key) is not None:
                yield key, at


@lru_cache(maxsize=4096)
def _frames(question: str) -> tuple[tuple[str, frozenset[str]], ...]:
    """What the tasks of a question are about, in their order; none where it is no query."""
    try:
        return tuple(dict.fromkeys(_parts(text) for text in sorted(json.loads(question)["asked"])))
    except (ValueError, KeyError, TypeError):
        return ()


@lru_cache(maxsize=4096)
def _parts(text: str) -> tuple[str, frozenset[str]]:
    """Rows and keys of a query without its conditions, and the conditions with the place of each.

    >>> tree = ["where", ["scan", "visits", "t1"], ["and", ["name", "t1.a"], ["name", "t1.b"]]]
    >>> frame, conditions = _parts(json.dumps({"source": tree, "keys": []}))
    >>> frame, len(conditions)
    ('[["scan", "visits", "t1"], []]', 2)
    """
    query = json.loads(text)
    conditions: list[str] = []
    bare = _bare(query["source"], conditions)
    return json.dumps([bare, query["keys"]]), frozenset(conditions)


def _bare(tree: Any, conditions: list[str]) -> Any:
    match tree:
        case ["where", source, condition]:
            bare = _bare(source, conditions)
            parts = condition[1:] if condition[0] == "and" else [condition]
            conditions.extend(json.dumps([bare, part]) for part in parts)
            return bare
        case list():
            return [_bare(part, conditions) for part in tree]
        case _:
            return tree


def _counts(ledger: Ledger, key: str, at: int) -> Counts | None:
    """The numbers of units that the ledger keeps of a task; None where it keeps no such numbers.

    Where one row of each unit counts, rows are units.
    """
    kept = ledger.answer(key)
    found = [] if kept is None else [kept_counts(drawn_within(kept), at, Measure(what)) for what in ("units", "rows")]
    return next((one for one in found if one is not None), None)
