"""How offers are put together: what they rest on, their texts, and offers about one prepared query."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from noisette.answers import Lasting
from noisette.privacy import Guarantee
from noisette.query.canonical import canonical_text
from noisette.query.caveats import Omission, omissions, sentences
from noisette.query.prepare import Prepared
from noisette.query.schema import Limits
from noisette.query.uses import changed_by_bounds, uses_of_query
from noisette.questions.contract import Offer, Procedure, Reads

__all__ = ["about", "declared", "of_declared", "reading", "text_of", "units_of"]


def about(
    prepared: Prepared,
    procedure: Procedure,
    *,
    text: str,
    why: str,
    guarantee: Guarantee,
    parts: list[dict[str, Any]],
    covers: str = "",
    omitted: Sequence[Omission] = (),
    value: Callable[[Any], Lasting] | None = None,
) -> Offer:
    """An offer whose data is one query; `covers` says what ± covers, `omitted` what is left out after the query."""
    caveats, reads = [sentences([*omissions(prepared), *omitted], covers)], reading([prepared], omitted, covers)
    return Offer(text, guarantee, units_of([prepared]), why, parts, caveats, procedure, value=value, reads=reads)


def reading(prepared: Sequence[Prepared], omitted: Sequence[Omission], covers: str) -> Reads:
    """What an offer with one answer rests on: queries, and what is left out after them."""

    def left_out(by_limits: Sequence[Omission], chosen: Mapping[str, Limits]) -> list[tuple[str, ...]]:
        others = [part for one in prepared for part in omissions(of_declared(one, chosen))]
        return [sentences([*by_limits, *others, *omitted], covers)]

    return Reads(tuple(prepared), left_out)


def of_declared(question: Prepared, chosen: Mapping[str, Limits]) -> Prepared:
    """The same query with declared limits alone, as far as its caveats say them; `chosen` are the others, by table."""
    shape, limits = question.shape, question.request.limits
    retained = tuple(part for part in shape.retained if part.joined or not set(part.tables) & set(chosen))
    found = {} if limits is None or shape.rows is not None else vars(limits)
    own = {name: most for name, most in found.items() if most not in [getattr(one, name) for one in chosen.values()]}
    declared = Limits(**own) if any(own.values()) else None
    request = replace(question.request, limits=declared)
    return replace(question, shape=replace(shape, retained=retained), request=request)


def text_of(question: str, prepared: Prepared, **options: object) -> str:
    """What is measured, with its options as texts, however it was written."""
    named = {name: str(value) for name, value in options.items()}
    asked = {"question": question, "asked": canonical_text(prepared.query), **named}
    return json.dumps({**asked, "declared": declared([prepared])}, sort_keys=True)


def declared(prepared: Iterable[Prepared], *more: object) -> str:
    """A short digest of the bounds, keys and limits that a question rests on: where they change, its text changes."""
    parts = sorted({repr(_rests_on(q)) for q in prepared})
    return hashlib.sha256(repr([*parts, *more]).encode()).hexdigest()[:16]


def _rests_on(prepared: Prepared) -> tuple[object, ...]:
    by_value = [part.by for part in prepared.shape.retained if part.by]
    more: list[object] = [part for part in (prepared.shape.retained, prepared.shape.through, by_value) if part]
    recoded = tuple((name, how) for name, kind in prepared.read if (how := kind.recode or kind.format) is not None)
    measures = sorted(map(repr, prepared.request.measures))
    rule = () if prepared.frequency is None else (prepared.frequency,)
    uses = changed_by_bounds(uses_of_query(prepared.query, dict(prepared.read), nearest=prepared.request.nearest))
    return (
        measures,
        prepared.request.limits,
        prepared.keys,
        prepared.read,
        *more,
        *([recoded] if recoded else []),
        *rule,
        *([uses] if uses else []),
    )


def units_of(prepared: Iterable[Prepared]) -> str:
    """Whose data is protected: the declared unit column, or "row"."""
    return " and ".join(sorted({one.shape.whose for one in prepared}))
