"""Queries as a question: what SQL and frames ask, one by one or planned together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from noisette.errors import InputError
from noisette.privacy import Neighbours, Promise
from noisette.query.canonical import canonical
from noisette.query.design import design, tasks_of
from noisette.query.expected import dry_run
from noisette.query.frame import Asked
from noisette.query.plan import Query
from noisette.query.prepare import prepare, ruled
from noisette.query.schema import Schema
from noisette.query.sql import parse
from noisette.query.sql.writer import query_sql
from noisette.questions.contract import Offer, Procedure
from noisette.questions.parts.chosen_limits import Adaptive, Planned, Terms, chosen
from noisette.questions.parts.grouping_sets import planned_sets
from noisette.questions.parts.limits_to_choose import tables_to_settle
from noisette.questions.parts.measuring import Measuring, offered

__all__ = ["Measuring", "Queries", "measuring", "query_of", "query_text"]


@dataclass(frozen=True)
class Queries:
    """One query, or several that are planned together: they share passes over the data, noise and the promise."""

    queries: tuple[Query, ...]

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Analyse the queries and choose their noise."""
        if not self.queries:
            raise InputError("There is nothing to ask: give at least one question.")
        forms = [canonical(query) for query in self.queries]
        plan: Planned = partial(self._within, neighbours=neighbours, level=level)
        if any(form.sets for form in forms):
            if len(forms) > 1:
                raise InputError("ROLLUP, CUBE and GROUPING SETS are asked one by one: take them out of the list.")
            plan = partial(planned_sets, sets=forms[0].sets, neighbours=neighbours, level=level)
            forms = [replace(forms[0], sets=())]
        if not tables_to_settle(forms, schema):
            return plan(forms, schema, spend)
        return chosen(forms, plan, schema, Terms(spend, neighbours, level))

    def _within(
        self, forms: Sequence[Query], schema: Schema, spend: Promise, *, neighbours: Neighbours, level: float
    ) -> Offer:
        """Plan queries in their canonical form within the limits of the schema."""
        prepared = [ruled(prepare(form, schema, of_two_units=True, narrow=True), schema) for form in forms]
        texts = [one.text for one in prepared]
        order = sorted(range(len(prepared)), key=texts.__getitem__)  # as the offer's text has them
        tasks, found = tasks_of([prepared[i] for i in order])
        places = [found[order.index(i)] for i in range(len(prepared))]
        made = design(tasks, spend, neighbours, level)
        for question, place in zip(prepared, places, strict=True):
            dry_run(question, made, place, neighbours, level)
        return offered(Measuring(tuple(prepared), tuple(places), made, neighbours, level), texts)


def measuring(procedure: Procedure) -> Measuring | None:
    """How queries are measured, at the least limits where they choose some; None for other questions."""
    if isinstance(procedure, Adaptive):
        return measuring(next(iter(procedure.plans.values())).procedure)
    return procedure if isinstance(procedure, Measuring) else None


# What is asked, as a plan and as a text


def query_of(asked: Any, schema: Schema) -> Query:
    """The query that SQL or a table's methods ask."""
    if isinstance(asked, str):
        return parse(asked, schema)
    if isinstance(asked, Asked):
        return asked.query
    if isinstance(asked, Query):
        return asked
    raise InputError("Write a query in SQL, or make it with a table's methods.")


def query_text(asked: Any) -> str | Query:
    """The SQL text of a query; a plan that SQL has no text for stays a plan."""
    if isinstance(asked, str):
        return asked
    units = asked.groups.scope.units if isinstance(asked, Asked) else ()
    query = asked.query if isinstance(asked, Asked) else asked
    if not isinstance(query, Query):
        raise InputError("Write a query in SQL, or make it with a table's methods.")
    try:
        return query_sql(query, units)
    except InputError:
        return query
