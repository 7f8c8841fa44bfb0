"""A case for each size of pieces, which runs every function that reads it; and sizes that no array is cut by."""

from collections.abc import Callable
from itertools import chain

from tests.contracts.seams import engines, numbers
from tests.contracts.seams.judging import Pairs


def both(*cases: Callable[[], Pairs]) -> Callable[[], Pairs]:
    """All that some cases find."""
    return lambda: chain.from_iterable(case() for case in cases)


SEAMS: dict[str, Callable[[], Pairs]] = {
    "attacks.trace:_BLOCK": numbers.traces,
    "engines.bounding.choice:_ENTRIES": engines.table_of_groups,
    "engines.bounding.words:_CHUNK": engines.bounding,
    "engines.csv:_BLOCK": engines.lines,
    "engines.duckdb.identity:_WAITING": engines.identities,
    "engines.files:_SOME": engines.texts,
    "engines.spark.executor:_A_PARCEL": engines.sent,
    "engines.spark.executor:_CHUNK": both(engines.executors, engines.sent),
    "engines.spark.executor:_DIGIT": engines.executors,
    "engines.spark.executor:_GATHERED": engines.gathered,
    "engines.spark.packing:_BYTES": engines.sent,
    "exact.bit_arrays:_CHUNK": numbers.coins,
    "exact.bit_arrays:_ROWS": numbers.bits,
    "exact.integers:CHUNK": numbers.filled,
    "exact.random:_BLOCK": numbers.keystream,
    "local.affine:_CELLS": numbers.arcs,
    "local.partial:_BATCH": numbers.partials,
    "local.projective:_POINTS": numbers.projective,
    "local.sorted_runs:_BYTES": both(numbers.runs, numbers.partials),
    "local.subset:_CELLS": numbers.subsets,
    "mechanisms.partitions.bounded_laplace:CHUNK": numbers.rare,
    "mechanisms.partitions.keep:CHUNK": numbers.kept,
    "mechanisms.partitions.threshold:CHUNK": numbers.thresholds,
    "mechanisms.quantiles.grid:_BLOCK": numbers.grid,
    "mechanisms.selection.joint_top:_CHUNK": numbers.orders,
    "mechanisms.sparse_vector.stream:CHUNK": numbers.sparse_vectors,
    "mechanisms.sparse_vector.stream:_WINDOW": numbers.sparse_vectors,
    "mechanisms.spatial.annuli:_CHUNK": numbers.annuli,
    "releases.maps.box_fit:_TOGETHER": numbers.boxes,
    "releases.strategies.matrix:_BLOCK": numbers.matrices,
    "releases.strategies.matrix:_CHUNK": numbers.matrices,
    "releases.strategies.nominal:_CHUNK": numbers.hierarchies,
}

_PARTS = "test_many_batches_in_parts_keep_the_rows_of_a_single_one"

JUDGED = {
    "engines.duckdb.retained:BATCH": f"engines/test_duckdb.py::{_PARTS}",
    "engines.duckdb.retained:BATCH_WITH_TEXT": f"engines/test_duckdb.py::{_PARTS}",
    "local.collector:_CHUNK": "local/test_collector.py::test_streams_are_read_in_pieces",
}
"""Sizes that cannot be so small, since an engine or a format has a least one: a test sets the smallest."""

OTHERS = {
    "curator.kept_line:_BLOCK": "what is sealed is filled up to it",
    "engines.spark.packing:_EVERY": "one of so many rows is looked at, to see which units have very many",
    "releases.line:_DRAWN": "a chart has so many bars",
    "releases.sparse.priority:_BATCH": "so many proposals are drawn at least, of which the first ones are taken",
    "releases.streams.opening:_BLOCKS": "a bound is worked out in so many places",
    "releases.synthetic.placing:_BLOCK": "so many neighbours share values evenly, by definition",
}
"""Names that are like those of sizes, and what they are."""
