"""The truth about the made-up data, read past the curator: nobody is behind these rows, so it may be shown."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noisette.answers import Column, Release

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Truth"]


class Truth:
    """Answers without noise, for invented data alone; a curator has no such thing."""

    def __init__(self, tables: dict[str, "pyarrow.Table"]) -> None:
        import duckdb

        self._engine = duckdb.connect()
        for name, table in tables.items():
            self._engine.register(name, table)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """The true answer, row by row."""
        found: list[dict[str, Any]] = self._engine.sql(sql).to_arrow_table().to_pylist()
        return found

    def of(self, answer: Release, sql: str) -> dict[str, NDArray[np.float64]]:
        """The true number for each number of an answer; groups that are not there count 0."""
        keys = [column.name for column in answer.columns if not column.measured]
        known = {tuple(row[key] for key in keys): row for row in self.rows(sql)}
        groups = list(zip(*(answer[key].values.to_pylist() for key in keys), strict=True)) or [()] * len(answer)
        return {
            column.name: np.array([float(known.get(group, {}).get(column.name, 0)) for group in groups])
            for column in answer.columns
            if column.measured
        }

    def close(self) -> None:
        """Let go of the tables."""
        self._engine.close()


def held(column: Column, truth: NDArray[np.float64]) -> int:
    """How many error bars hold the truth."""
    assert column.low is not None
    assert column.high is not None
    return int(np.sum((column.low <= truth) & (truth <= column.high)))
