"""What convicted once, as small as it gets: worlds with a question, and states with events; each is tried for ever."""

from typing import Any

from tests.attack.questions import Question
from tests.attack.tables import BIG, Table, World

from noisette.releases.streams.pan_private import PanPrivateDensity

COUNTED = ("COUNT(*)",)


def _world(
    types: dict[str, str],
    held: list[tuple[str, ...]],
    *,
    victim: str | None = None,
    other: list[tuple[str, ...]] | None = None,
    public: dict[str, Table] | None = None,
    storage: str = "duckdb",
    **rules: Any,
) -> World:
    tables = {"v": Table(tuple(types.items()), tuple(held)), **(public or {})}
    policy = {"tables": {"v": rules, **{name: {"public": True} for name in public or {}}}}
    return World(tables, policy, victim, {"v": tuple(other or ())}, storage)


AGES = {"bounds": [0, 110]}
PAIR = {"u": "BIGINT", "g": "VARCHAR", "k": "BIGINT"}
SIX = [("'ann'", "'a'"), ("'ANN'", "'a'"), ("'Ann'", "'a'"), ("'aNN'", "'a'"), ("'bob'", "'a'")]


def _public(name: str, column: str, type: str, values: list[str]) -> dict[str, Table]:
    return {name: Table(((column, type),), tuple((value,) for value in values))}


HOLES: dict[str, tuple[World, Question]] = {
    "a row of a sub-query for each other key of a unit": (
        _world(
            {"u": "BIGINT", "g": "VARCHAR"},
            [("1", "'a'"), ("1", "'b'"), ("1", "'c'"), ("2", "'a'")],
            victim="1",
            other=[("1", "'a'")],
            unit="u",
            rows=3,
        ),
        Question(source="(SELECT u, g, COUNT(*) AS k FROM v GROUP BY u, g) AS v", aggregates=COUNTED),
    ),
    "a value beyond the bounds of a declared key beside an unknown one": (
        _world(
            {"z": "BIGINT", "k": "BIGINT"},
            [("8001", "999"), ("8001", "50")],
            other=[("8001", "50")],
            columns={"k": AGES},
        ),
        Question(keys=("v.z", "v.k"), aggregates=COUNTED),
    ),
    "one past the high bound of such a key that may be NULL": (
        _world(
            {"z": "BIGINT", "k": "BIGINT"},
            [("8001", "111"), ("8001", "50")],
            other=[("8001", "NULL")],
            columns={"k": AGES},
        ),
        Question(keys=("v.z", "v.k"), aggregates=("SUM(v.k)",)),
    ),
    "whole numbers and doubles in a join": (
        _world(
            {"u": "DOUBLE", "k": "BIGINT"},
            [(f"{float(BIG)}", "1")],
            victim=f"{float(BIG)}",
            public=_public("p", "j", "BIGINT", [str(BIG + i) for i in range(20)]),
            unit="u",
            rows=1,
        ),
        Question(source="v JOIN p ON v.u = p.j", aggregates=COUNTED),
    ),
    "the same where each row is a unit": (
        _world(
            {"x": "DOUBLE"}, [(f"{float(BIG)}",)], public=_public("p", "j", "BIGINT", [str(BIG + i) for i in range(20)])
        ),
        Question(source="v JOIN p ON v.x = p.j", aggregates=COUNTED),
    ),
    "a decimal and whole numbers in a join": (
        _world(
            {"x": "DECIMAL(38,0)"},
            [(str(2**53),)],
            public=_public("p", "j", "DOUBLE", [f"{2**53}.0", f"{2**53 + 2}.0"]),
        ),
        Question(source="v JOIN p ON v.x = p.j", aggregates=COUNTED),
    ),
    "moments and days in a join": (
        _world(
            {"d": "TIMESTAMP"},
            [("'2020-01-01'",)],
            public=_public("p", "j", "TIMESTAMP_NS", ["'2020-01-01'", "'2020-01-01 00:00:00.000000001'"]),
        ),
        Question(source="v JOIN p ON v.d = p.j", aggregates=COUNTED),
    ),
    "a collation of units": (
        _world(
            {"u": "VARCHAR COLLATE NOCASE", "g": "VARCHAR"},
            SIX,
            victim="'ann'",
            other=[("'bob'", "'a'")],
            unit="u",
            rows=1,
        ),
        Question(source="(SELECT u, COUNT(*) AS k FROM v GROUP BY u) AS v", aggregates=("SUM(LEAST(v.k, 9))",)),
    ),
    "a collation of units that are joined": (
        _world({"u": "VARCHAR COLLATE NOCASE", "g": "VARCHAR"}, SIX, victim="'ann'", other=[], unit="u", rows=6),
        Question(source="v JOIN v AS w ON v.u = w.u", aggregates=COUNTED),
    ),
    "a collation of a key that is joined": (
        _world({"g": "VARCHAR COLLATE NOCASE"}, [("'a'",)], public=_public("q", "g", "VARCHAR", ["'a'", "'A'"])),
        Question(source="v JOIN q ON v.g = q.g", aggregates=COUNTED),
    ),
    "two collations in a join": (
        _world(
            {"g": "VARCHAR COLLATE NOACCENT"}, [("'a'",)], public=_public("q", "g", "VARCHAR COLLATE NOCASE", ["'a'"])
        ),
        Question(source="v JOIN q ON v.g = q.g", aggregates=COUNTED),
    ),
    "decimals of all digits before and after the point": (
        _world(
            {"x": "DECIMAL(38,0)"},
            [("1" + "0" * 37,), ("1",)],
            other=[("1",)],
            public=_public("p", "j", "DECIMAL(38,37)", ["1", "2"]),
        ),
        Question(source="v JOIN p ON v.x = p.j", aggregates=COUNTED),
    ),
    "units of two types in a join": (
        World(
            {"v": Table((("u", "BIGINT"),), (("1",),)), "l": Table((("u", "DOUBLE"),), (("1.0",),))},
            {"tables": {"v": {"unit": "u", "rows": 1}, "l": {"unit": "u", "rows": 1}}},
            "1",
            {"v": (("2",),)},
        ),
        Question(source="v JOIN l ON v.u = l.u", aggregates=COUNTED),
    ),
}
"""By what each is about."""

SEIZED: dict[str, tuple[PanPrivateDensity, str]] = {
    "a release after an intrusion": (PanPrivateDensity(1, epsilon=1, release_epsilon=10), "IAR"),
    "releases, and then an intrusion": (PanPrivateDensity(1, epsilon="1/10"), "RRAI"),
    "two releases without an intrusion": (PanPrivateDensity(1, epsilon=1, release_epsilon=5), "RAR"),
    "two intrusions": (PanPrivateDensity(1, epsilon=1), "IAI"),
}
"""States and what happened to them: I an intrusion, R a release, A the person appears, or in the neighbour does not."""
