"""A query in SQL, as a question of its own: what `curator.ask("SELECT …")` asks."""

from dataclasses import dataclass
from typing import Any

from noisette.privacy import Neighbours, Promise
from noisette.query.schema import Schema
from noisette.query.sql import parse
from noisette.questions.contract import Offer
from noisette.questions.data import JsonQuestion
from noisette.questions.parts.queries import Queries

__all__ = ["Sql"]


@dataclass(frozen=True)
class Sql(JsonQuestion):
    """One SELECT statement.

    >>> Sql("SELECT COUNT(*) FROM visits").to_json()
    '{"sql": "SELECT COUNT(*) FROM visits"}'
    """

    text: str

    def offer(self, schema: Schema, spend: Promise, neighbours: Neighbours, level: float) -> Offer:
        """Plan the query and choose its noise."""
        return Queries((parse(self.text, schema),)).offer(schema, spend, neighbours, level)

    def fields(self) -> Any:
        """The text alone."""
        return self.text


examples = [
    Sql("SELECT ward, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY ward"),
    Sql("SELECT diagnosis, COUNT(*) AS n FROM visits GROUP BY diagnosis"),
]
