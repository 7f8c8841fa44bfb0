"""Frames and SQL say the same in the same plan."""

from fractions import Fraction

import pytest
from tests.query.tables import SCHEMA

from noisette.errors import InputError
from noisette.query.canonical import canonical
from noisette.query.expression import Call, Name
from noisette.query.frame import frame
from noisette.query.kind import Kind
from noisette.query.schema import Column, Table
from noisette.query.sql import parse


class Curator:
    def ask(self, question, *, spend, analyst):
        return question, spend, analyst

    def explain(self, question, **options):
        return question, options


visits, labs, wards = (frame(SCHEMA, name) for name in ("visits", "labs", "wards"))


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("SELECT COUNT(*) FROM visits", visits.count()),
        ("SELECT SUM(cost) FROM visits WHERE age >= 18", visits.where("age >= 18").sum("cost")),
        ("SELECT ward, COUNT(*) FROM visits GROUP BY ward", visits.group_by("ward").count()),
        ("SELECT ward, AVG(age) FROM visits GROUP BY ward", visits.group_by("ward").mean("age")),
        ("SELECT ward, MEDIAN(age) FROM visits GROUP BY ward", visits.group_by("ward").median("age")),
        ("SELECT QUANTILE(age, 0.9) FROM visits", visits.quantile("age", 0.9)),
        (
            "SELECT ward, FLOOR(age / 10) * 10 AS decade, COUNT(*) FROM visits GROUP BY ALL",
            visits.group_by("ward", decade="FLOOR(age/10)*10").count(),
        ),
        (
            "SELECT ward, COUNT(*) AS n, AVG(age) AS mean_age FROM visits WHERE smoker AND age > 17 GROUP BY ward "
            "HAVING n > 100 ORDER BY n DESC, ward LIMIT 10",
            visits.where("age > 17")
            .where("smoker")
            .group_by("ward")
            .agg(n="COUNT(*)", mean_age="AVG(age)")
            .having("n > 100")
            .order_by("n DESC", "ward")
            .limit(10),
        ),
        (
            "SELECT floor, COUNT(*) FROM visits LEFT JOIN wards USING (ward) GROUP BY floor",
            visits.join(wards, on="ward", how="left").group_by("floor").count(),
        ),
        (
            "SELECT SUM(value) FROM visits JOIN labs ON visits.patient_id = labs.patient_id WHERE age < value",
            visits.join(labs, on={"patient_id": "patient_id"}).where("age < value").sum("value"),
        ),
        (
            "SELECT SUM(a.age) FROM visits a JOIN visits b USING (patient_id) WHERE a.ward <> b.ward",
            visits.join(visits, on=["patient_id"]).where("visits.ward <> visits_2.ward").sum("visits.age"),
        ),
        (
            "SELECT AVG(double) FROM (SELECT age * 2 AS double, smoker FROM visits) s WHERE smoker",
            visits.select("smoker", double="2 * age").where("smoker").mean("double"),
        ),
        (
            "SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY 1 HAVING COUNT(*) < 9) s",
            visits.per_unit(n="COUNT(*)").where("n < 9").mean("n"),
        ),
        (
            "SELECT ward, SUM(most) FROM (SELECT patient_id, ward, MAX(age) AS most FROM visits "
            "GROUP BY ALL) GROUP BY ward",
            visits.per_unit("ward", most="MAX(age)").group_by("ward").sum("most"),
        ),
        (
            "SELECT COUNT(*) FROM visits JOIN (SELECT patient_id, SUM(value) AS total FROM labs GROUP BY patient_id) s "
            "USING (patient_id) WHERE total > 5",
            visits.join(labs.per_unit(total="SUM(value)"), on="patient_id").where("total > 5").count(),
        ),
        ("SELECT DISTINCT ward FROM visits", visits.group_by("ward").agg()),
    ],
)
def test_the_same_plan(text, asked):
    assert canonical(parse(text, SCHEMA)) == canonical(asked.query)


def test_frames_do_not_change():
    before = visits.relation
    visits.where("age > 3").group_by("ward").count()
    assert visits.relation == before


def test_questions_go_to_the_curator():
    asked = frame(SCHEMA, "visits", curator=Curator()).where("age > 3").count()
    assert asked.release(spend="1/10", analyst="ana") == (asked.query, "1/10", "ana")
    assert asked.explain(error=50) == (asked.query, {"error": 50})
    with pytest.raises(InputError, match="no curator"):
        visits.count().release(spend=1)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: visits.group_by("ward").where("age > 3"),
        lambda: visits.group_by("ward").group_by("age"),
        lambda: visits.group_by("patient_id").count(),
        lambda: visits.where("age"),
        lambda: visits.where("COUNT(*) > 3"),
        lambda: visits.where(3),
        lambda: visits.select("sesame"),
        lambda: visits.select("COUNT(*)"),
        lambda: visits.join(labs, on="ward"),
        lambda: visits.join(labs, on={"age": "value"}),
        lambda: visits.join(wards, on="ward", how="right"),
        lambda: visits.join(wards, on="LOWER(ward)"),
        lambda: visits.join(frame({}, "wards"), on="ward"),
        lambda: wards.count(),
        lambda: wards.per_unit(n="COUNT(*)"),
        lambda: visits.per_unit(n="MEDIAN(age)"),
        lambda: visits.agg(n="age"),
        lambda: visits.agg(),
        lambda: visits.quantile("age", 2),
        lambda: visits.count().limit(0),
        lambda: visits.count().limit(-1),
        lambda: visits.count().order_by("age"),
        lambda: visits.count().having("count"),
        lambda: frame(SCHEMA, "sesame").count(),
    ],
)
def test_refused(ask):
    with pytest.raises(InputError) as refused:
        ask()
    assert str(refused.value).endswith(".")


def test_a_column_may_have_any_name_and_that_very_name_comes_first():
    kind = Kind("integer", Fraction(0), Fraction(9), Fraction(1))
    columns = tuple(Column(name, kind) for name in ("a-b", "a", "b", "x y"))
    rows = frame({"t": Table("t", columns)}, "t")
    for name in ("a-b", "x y"):
        assert rows.group_by(name).count().query.keys == (Name(f"t.{name}"),)
        assert rows.sum(name).query.outputs[0][1].of == Name(f"t.{name}")
        assert rows.select(name).group_by(name).count().query.keys[0].name.endswith(name)
    assert isinstance(rows.group_by(k="b-a").count().query.keys[0], Call)  # there is no such column: an expression


def test_rows_are_joined_on_columns_of_any_name():
    kind = Kind("integer", Fraction(0), Fraction(9), Fraction(1))
    tables = [
        Table("t", (Column("a-b", kind), Column("when", kind))),
        Table("p", (Column("a-b", kind), Column("when", kind)), public=True, repeats={"a-b": 1, "when": 1}),
    ]
    schema = {table.name: table for table in tables}
    for name in ("a-b", "when"):
        joined = frame(schema, "t").join(frame(schema, "p"), on=name)
        assert joined.relation.on == ((f"t.{name}", f"p.{name}"),)
    assert [frame(schema, "t").text(name) for name in ("a-b", "when", "1 + 1")] == ['"a-b"', '"when"', "1 + 1"]


@pytest.mark.parametrize("end", ["n_low", "N_HIGH"])
def test_the_ends_of_an_error_bar_have_names_of_their_own(end):
    for text in (f"SELECT ward AS {end}, COUNT(*) AS n", f"SELECT ward, COUNT(*) AS n, SUM(age) AS {end}"):
        with pytest.raises(InputError, match=f"(?i){end} is an end of the error bar of n: rename one with AS"):
            parse(f"{text} FROM visits GROUP BY ward", SCHEMA)
    with pytest.raises(InputError, match="is an end of the error bar"):
        visits.group_by(**{end: "ward"}).agg(n="COUNT(*)")
    parse(f"SELECT ward AS n, COUNT(*) AS {end} FROM visits GROUP BY ward", SCHEMA)


@pytest.mark.parametrize(
    "ask",
    [
        lambda name: visits.agg(**{name: "COUNT(*)"}),
        lambda name: visits.select(**{name: "age"}),
        lambda name: visits.group_by(**{name: "age"}).count(),
    ],
)
def test_names_that_cannot_be_written_down_are_refused(ask):
    with pytest.raises(InputError, match=r"^The name of a column must be valid Unicode"):
        ask("a\ud800")
    assert ask("é\U0001f600") is not None
