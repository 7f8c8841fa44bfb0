"""Trees are copied only where they are used twice, and what is known of a relation is looked up once."""

import pytest
from sqlglot import exp

from noisette.engines.contract import CLEAN, STORED
from noisette.engines.duckdb.session import text_of
from noisette.engines.sql.expressions import normalised
from noisette.engines.sql.syntax import binary, chain, choose, column, hash_of, least
from noisette.query.kind import Kind
from noisette.query.once import once
from noisette.query.plan import Scan
from noisette.query.schema import Table


def test_a_tree_stands_in_one_place():
    """A tree that is used twice is copied the second time, also within one call."""
    x = column("x")
    made = chain(exp.And, [binary(exp.Add, x, x), binary(exp.Sub, x, column("y"))])
    assert made.sql("duckdb") == '(("x" + "x") AND ("x" - "y"))'
    columns = list(made.find_all(exp.Column))
    assert len({id(one) for one in columns}) == 4
    assert all(one.parent is not None and one in one.parent.args.values() for one in columns)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda x: choose((x, x), (column("y"), x), otherwise=x),
            'CASE WHEN "x" THEN "x" WHEN "y" THEN "x" ELSE "x" END',
        ),
        (lambda x: least(x, x), 'LEAST("x", "x")'),
        (lambda x: hash_of(x, column("y"), x), 'HASH("x", "y", "x")'),
    ],
)
def test_a_tree_that_comes_twice_is_copied(make, text):
    made = make(column("x"))
    assert made.sql("duckdb") == text
    columns = list(made.find_all(exp.Column))
    assert len({id(one) for one in columns}) == len(columns)


@pytest.mark.parametrize("kind", CLEAN)
def test_a_tree_that_is_written_stays_as_it_is(kind):
    """It is written without a copy, and some trees are part of two statements."""
    for stored in STORED[kind]:
        for nullable in (True, False):
            tree = normalised(column("x"), Kind(kind, nullable=nullable), stored)
            before = tree.copy()
            assert text_of(tree) == text_of(tree) == before.sql("duckdb")
            assert tree == before


def test_what_is_known_of_a_relation_is_that_of_the_tables_given():
    @once
    def limit(relation, schema):
        return schema[relation.table].public

    scan, schema = Scan("t", "t"), {"t": Table("t", (), public=True)}
    assert limit(scan, schema)
    schema["t"] = Table("t", ())
    assert not limit(scan, schema)
    assert limit(scan, {"t": Table("t", (), public=True)})
    schema = {"s": Table("s", (), public=True), "t": schema["t"]}
    assert not limit(scan, schema)
    schema["s"], schema["t"] = schema["t"], schema["s"]
    assert limit(scan, schema)
