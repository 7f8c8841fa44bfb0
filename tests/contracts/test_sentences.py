"""No sentence of an explanation differs from what is done: each is read word by word and tried out on the engine.

A sentence that no reader here knows is a fault, and so is something that is done without a sentence. Numbers are taken
from the sentence; the engine then computes tables that differ just inside and just outside of them.
"""

import datetime
import json
import math
import re
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from html import escape

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from tests.contracts import test_questions as known

import noisette as nz
from noisette import mechanisms
from noisette.engines.duckdb.source import DuckDB
from noisette.query.aggregate import measures_of
from noisette.query.measure import Measure
from noisette.query.plan import Where, aggregates_of
from noisette.query.reads import kinds_read
from noisette.questions.parts.queries import Measuring

SECRET = bytes(16)
NAMES = ("patient", "ward", "illness", "age", "pay", "day")
TYPES = (pyarrow.int64(), pyarrow.string(), pyarrow.string(), pyarrow.int64(), pyarrow.float64(), pyarrow.date32())
WARDS = ("east", "north", "south")
BOUNDS = {"age": (0, 110), "pay": (0.5, 1234567.25), "day": (datetime.date(2024, 1, 1), datetime.date(2024, 3, 1))}
ROW = (1, "north", "cold", 50, 700.0, datetime.date(2024, 2, 1))
PLACES = pyarrow.table({"ward": WARDS, "floor": [1, 2, 2]})
LIMITS = {
    "rows": {"rows": 4},
    "groups": {"groups": 2, "rows_per_group": 3},
    "both": {"rows": 5, "groups": 3, "rows_per_group": 2},
    "rows alone": {},
}

SINGLE = {
    "COUNT(*)": (),
    "COUNT(age)": ("age",),
    "COUNT(DISTINCT patient)": (),
    "COUNT(DISTINCT ward)": (),
    "SUM(age)": ("age",),
    "SUM(pay)": ("pay",),
    "SUM(age - 60)": ("age",),
    "SUM(LEAST(2 * age, 70))": ("age",),
    "AVG(age)": ("age",),
    "AVG(pay)": ("pay",),
    "VARIANCE(age)": ("age",),
    "STDDEV(pay)": ("pay",),
    "MEDIAN(age)": ("age",),
    "MAX(pay)": ("pay",),
    "SUM(age) / COUNT(*)": ("age",),
    "CORR(age, pay)": ("age", "pay"),
    "COUNT(*) / SUM(COUNT(*)) OVER ()": (),
}
"""Aggregates, and the columns whose values they clamp."""
BUNDLES = {"counts": "COUNT(*)", "numbers": "SUM(age) AS a, AVG(pay) AS b, COUNT(DISTINCT ward)"}
FROM = {
    "all": "SELECT {} AS y FROM visits",
    "where": "SELECT {} AS y FROM visits WHERE pay < 2000000 AND day >= DATE '2023-01-01'",
    "by ward": "SELECT ward, {} AS y FROM visits GROUP BY ward",
    "by month": "SELECT MONTH(day) AS m, {} AS y FROM visits GROUP BY 1",
    "by case": "SELECT CASE WHEN ward = 'north' THEN 'n' ELSE 'o' END AS k, {} AS y FROM visits GROUP BY 1",
    "by upper": "SELECT UPPER(ward) AS k, {} AS y FROM visits GROUP BY 1",
    "joined": "SELECT floor, {} AS y FROM visits JOIN places USING (ward) GROUP BY floor",
    "by illness": "SELECT illness, {} AS y FROM visits GROUP BY illness",
}


def opened(limits, rows=()):
    columns = {
        "patient": {"nullable": False},
        "ward": {"keys": list(WARDS), "nullable": False},
        **{name: {"bounds": list(ends), "nullable": False} for name, ends in BOUNDS.items()},
    }
    unit = {"unit": "patient"} if limits else {}
    rules = {"visits": {**unit, **limits, "columns": columns}}
    rules["places"] = {
        "public": True,
        "columns": {"floor": {"bounds": [1, 2], "nullable": False}, "ward": {"keys": list(WARDS), "nullable": False}},
    }
    data = {"visits": table(rows or [ROW]), "places": PLACES}
    return nz.open(data, budget=nz.Approx(10_000, "1e-3"), policy={"tables": rules})


def table(rows):
    return pyarrow.table(
        [pyarrow.array(c, t) for c, t in zip(zip(*rows, strict=True), TYPES, strict=True)], names=NAMES
    )


def changed(**new):
    return tuple(new.get(name, value) for name, value in zip(NAMES, ROW, strict=True))


def requests(offer):
    """What an offer asks an engine for."""
    procedure = offer.procedure
    if isinstance(procedure, Measuring):
        return [task.request for task in procedure.design.tasks]
    if hasattr(procedure, "scores"):
        return [one.request for one in procedure.scores.prepared]
    if hasattr(procedure, "offers"):
        return [request for _, one in procedure.offers for request in requests(one)]
    return [procedure.prepared.request]


@lru_cache(maxsize=64)
def source(rows):
    return DuckDB({"visits": table(rows), "places": PLACES}, threads=1)


def exact(offer, rows, schema, **changes):
    """All that the engine computes of these rows for an offer: by key, if the keys are not declared."""
    found = []
    for request in requests(offer):
        made = source(tuple(rows)).aggregate(replace(request, **changes), schema, SECRET)
        arrays = [np.asarray(m).tolist() for m in made.measures]
        groups = [None] * len(arrays[0]) if made.keys is None else map(str, made.keys.to_pylist())
        found.append(sorted(zip(groups, *arrays, strict=True), key=repr))
    return found


# The readers: each takes what a sentence says, and tries it out

LIMITED = re.compile(r"At most (.*) of each (\w+) (?:are|is) used; further rows are left out\.")
CLAMPED = re.compile(r"Values of (.*) count as the nearer bound\.")
OUT_OF_GROUPS = re.compile(r"Rows whose (.*) are in no group\.")
COMPARED = re.compile(r"No comparison with a value of (.*) holds\.")
UNCOUNTED = re.compile(r"COUNT\(DISTINCT \.\.\.\) counts no value of (.*)\.")
NEVER = re.compile(r"No row can meet (.*): that asks for values beyond the bounds of (.*)\.")
BEYOND = (CLAMPED, OUT_OF_GROUPS, COMPARED, UNCOUNTED, NEVER)
ONE = re.compile(r"([\w.]+) (?:lies )?beyond \[([^,]+), ([^\]]+)\]")
UNDECLARED = re.compile(r"Rows whose (\w+) is a value other than its (\d+) declared keys are left out\.")
NO_GROUP = re.compile(r"Rows in no group of the declared keys of (\w+) are left out\.")
DISTINCT = re.compile(r"COUNT\(DISTINCT \.\.\.\) counts declared keys of (\w+) alone\.")
SMALL = re.compile(r"Groups of fewer than about ([\d,]+) (\w+)s are left out, because their keys are not declared\.")
CLOSING = re.compile(r"(?:± covers the noise only, not what this leaves out; t|T)he owner can (.*) in the policy\.")


def value(text):
    return datetime.date.fromisoformat(text) if text.count("-") == 2 else float(text) if "." in text else int(text)


def read_limits(sentence, offer, schema):
    """Ten rows of one patient in each of three wards: as many are used as the sentence says, and no fewer."""
    said = LIMITED.fullmatch(sentence)
    assert said[2] == "patient"
    parts = {"row": 99, "group": 99, "row per group": 99}
    for number, noun, each in re.findall(r"(\d+) (row|group)s?( per group)?", said[1]):
        parts[noun + each] = int(number)
    many = [changed(ward=ward, illness=ward) for ward in WARDS for _ in range(10)]
    sizes, used = (_counts(offer, many, schema, **limits) for limits in ({"limits": None}, {}))
    full = [min(size, parts["row per group"]) for size in sizes]
    assert all(one <= most for one, most in zip(used, full, strict=True))
    groups = sum(map(bool, used))
    assert sum(used) <= parts["row"]
    assert groups <= parts["group"]
    filled = all(one in (0, most) for one, most in zip(used, full, strict=True))
    assert sum(used) == parts["row"] or (filled and groups == min(parts["group"], sum(map(bool, sizes))))
    return "raise the limits"


def _counts(offer, rows, schema, **changes):
    """Rows that are used of each group, whatever is measured."""
    request = requests(offer)[0]
    plain = replace(request, measures=(Measure("rows"),), **changes)
    return source(tuple(rows)).aggregate(plain, schema, SECRET).measures[0].tolist()


def beyond(parts):
    """For each column that is named, a row at either bound and one beyond it."""
    for name, low, high in ONE.findall(parts):
        if name == "floor":  # public, and within its bounds
            continue
        ends = value(low), value(high)
        assert ends == BOUNDS[name]
        for end, step in zip(ends, (-1, 1), strict=True):
            away = datetime.timedelta(400) if name == "day" else 10**6
            yield name, changed(**{name: end}), changed(**{name: end + step * away})


def read_clamps(sentence, offer, schema):
    """Of all rows, since a condition on the column would leave those beyond its bounds out."""
    everyone = requests(offer)[0].source
    while isinstance(everyone, Where):
        everyone = everyone.source
    for name, at, away in beyond(CLAMPED.fullmatch(sentence)[1]):
        found, same = (exact(offer, [row, ROW], schema, source=everyone) for row in (away, at))
        assert found == same, name
    return "widen the bounds"


def read_groups(sentence, offer, schema):
    for name, at, away in beyond(OUT_OF_GROUPS.fullmatch(sentence)[1]):
        assert exact(offer, [away, ROW], schema) == exact(offer, [ROW], schema) != exact(offer, [at, ROW], schema), name
    return "widen the bounds"


def read_comparisons(sentence, offer, schema):
    """All comparisons of these questions hold for most values, and must hold for a row to count."""
    for name, at, away in beyond(COMPARED.fullmatch(sentence)[1]):
        assert exact(offer, [away, ROW], schema) == exact(offer, [ROW], schema) != exact(offer, [at, ROW], schema), name
    return "widen the bounds"


def read_keys(sentence, offer, schema):
    said = UNDECLARED.fullmatch(sentence) or NO_GROUP.fullmatch(sentence)
    assert said[1] == "ward"
    assert len(said.groups()) == 1 or int(said[2]) == len(WARDS)
    odd = changed(patient=9, ward="attic")
    assert exact(offer, [odd, ROW], schema) == exact(offer, [ROW], schema)
    return "declare more keys"


def read_distinct(sentence, offer, schema):
    assert DISTINCT.fullmatch(sentence)[1] == "ward"
    odd = [changed(patient=9, ward="attic"), ROW]
    assert "attic" not in WARDS
    few = [[m for m in request.measures if m.what == "distinct"] for request in requests(offer)]
    measure = (few[0][0],)
    assert exact(offer, odd, schema, measures=measure) == exact(offer, [ROW], schema, measures=measure)
    return "declare more keys"


def read_small(sentence, offer, _):
    """A rule that keeps half of the groups of that size, and fewer of smaller ones."""
    least, (rule,) = int(SMALL.fullmatch(sentence)[1].replace(",", "")), offer.procedure.design.keys.values()
    assert rule.chance(least) >= 0.5 > rule.chance(least - 1)
    return "declare the keys"


READERS = {
    LIMITED: read_limits,
    CLAMPED: read_clamps,
    OUT_OF_GROUPS: read_groups,
    COMPARED: read_comparisons,
    UNDECLARED: read_keys,
    NO_GROUP: read_keys,
    DISTINCT: read_distinct,
    SMALL: read_small,
}


def check(sentences, offer, schema):
    """Read every sentence; the last one names the cures of all others, and only these."""
    if not sentences:
        return
    *others, last = sentences
    cures = []
    for sentence in others:
        (reader,) = [read for pattern, read in READERS.items() if pattern.fullmatch(sentence)]
        cures.append(reader(sentence, offer, schema))
    assert set(re.split(r", | and ", CLOSING.fullmatch(last)[1])) == set(cures)


def silent(sentences, offer, schema):
    """What is done although no sentence says so."""
    found = []
    one = " ".join(sentences)
    if "are used" not in one and sum(_counts(offer, [ROW] * 10, schema)) < 10:
        found.append("rows are left out")
    for name, (_, high) in BOUNDS.items():
        step = datetime.timedelta(1) if name == "day" else 1
        inside, at, away = (changed(**{name: high + k * step}) for k in (-31, 0, 40))
        if re.search(f"{name} (lies )?beyond", one):
            continue
        same = exact(offer, [at], schema) == exact(offer, [away], schema)
        if same and exact(offer, [inside], schema) != exact(offer, [at], schema):
            found.append(f"{name} is clamped")
        alone = exact(offer, [ROW], schema)
        if exact(offer, [away, ROW], schema) == alone != exact(offer, [at, ROW], schema):
            found.append(f"{name} is left out")
    odd, usual = changed(patient=9, ward="attic"), changed(patient=9)
    less, more = exact(offer, [ROW], schema), exact(offer, [usual, ROW], schema)
    if "ward" not in one and less != more and less == exact(offer, [odd, ROW], schema):
        found.append("wards are left out")
    return found


# SQL


def spends(text):
    return nz.Approx(1, "1e-6") if "illness" in text else nz.Pure(1)


@lru_cache
def curators(limits):
    return opened(LIMITS[limits])


def explained(text, limits):
    curator = curators(limits)
    found = curator.explain(text, spend=spends(text))
    (sentences,) = found.caveats
    check(sentences, found.offer, curator.schema)
    joined = {"wards are left out"} if "JOIN" in text else set()  # by the join itself: no place has that name
    assert set(silent(sentences, found.offer, curator.schema)) <= joined
    return found, " ".join(sentences)


CASES = [*((source, "both") for source in FROM), *((s, limits) for limits in LIMITS for s in ("all", "by ward"))]


@pytest.mark.slow
@pytest.mark.parametrize(("source", "limits"), sorted(set(CASES)))
@pytest.mark.parametrize("bundle", BUNDLES)
def test_what_is_left_out_of_groups(bundle, source, limits):
    _, said = explained(FROM[source].format(BUNDLES[bundle]), limits)
    assert ("are used" in said) == bool(LIMITS[limits])


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("asked", SINGLE)
def test_sentences_about_single_numbers(asked):
    found, said = explained(FROM["by ward"].format(asked), "both")
    assert set(re.findall(r"(\w+) beyond", said)) == set(SINGLE[asked])
    read_noise(found)
    read_changes(found, curators("both").schema)


def test_nothing_is_said_where_nothing_is_left_out():
    assert curators("rows alone").explain("SELECT COUNT(*) AS n FROM visits", spend=1).caveats == ((),)


# What one unit can change, and how large the noise is

NOISE = re.compile(r"(\w+) noise, standard deviation ([\d.e+-]+)")
CHANGES = re.compile(r"(.+): ([\d.,e+-]+) in one group, ([\d.,e+-]+) in all")


def read_noise(found):
    """The deviations are those of the record's mechanisms, built again, in the units of their measures."""
    told = {(name, float(size)) for name, size in NOISE.findall("; ".join(c.mechanism for c in found.columns))}
    built = [(p["mechanism"], _deviation(p)) for p in found.offer.parts if set(p["parameters"]) == {"scale"}]
    assert len(told) <= len(built)
    for name, size in told:
        assert any(name == other and size == pytest.approx(real, rel=6e-4) for other, real in built)


def _deviation(part):
    unit = float(Fraction(part["grid"])) if part["measure"] == "sum" else 1
    return unit * math.sqrt(getattr(mechanisms, part["mechanism"])(part["parameters"]["scale"]).variance())


def read_changes(found, schema):
    """Among extreme rows of one patient some change a measure by what is said, and none by more."""
    shape, part = found.offer.procedure.prepared[0].shape, found.offer.procedure.prepared[0].part
    [(_, result)] = [output for output in found.offer.procedure.prepared[0].query.outputs if output[0] == "y"]
    measures = [m for a in dict.fromkeys(aggregates_of(result)) for m in measures_of(a, shape, part)]
    said = found.columns[0].sensitivity.split("; ")
    assert len(said) == len(dict.fromkeys(measures))
    for sentence, measure in zip(said, dict.fromkeys(measures), strict=True):
        name, most, total = CHANGES.fullmatch(sentence).groups()
        reached = [_moved(found.offer, rows, measure, schema) for rows in _extremes()]
        for stated, real in ((most, max(m for m, _ in reached)), (total, max(t for _, t in reached))):
            most_said = float(stated.replace(",", ""))
            assert real * (1 - 1e-7) <= most_said, name  # six digits, rounded up
            assert most_said <= real * (1 + 1.1e-5) or measure.what == "distinct", name


def _extremes():
    for age, pay in ((BOUNDS["age"][0], BOUNDS["pay"][0]), (BOUNDS["age"][1], BOUNDS["pay"][1]), (55, 617284.0)):
        for some in (2, 3):  # wards
            days = [datetime.date(2024, 1, 1 + i) for i in range(10)]
            yield [changed(ward=ward, age=age, pay=pay, day=day) for ward in WARDS[:some] for day in days]


def _moved(offer, rows, measure, schema):
    """By how much these rows of one patient change a measure, in one group and in all, in natural units."""
    request = replace(requests(offer)[0], measures=(measure,))
    change = np.abs(source(tuple(rows)).aggregate(request, schema, SECRET).measures[0])
    change = change.sum(axis=1) if change.ndim > 1 else change
    unit = float(measure.grid) if measure.what == "sum" else 1
    return unit * int(change.max()), unit * int(change.sum())


# Questions that are values, and all the places in which their sentences stand

OUTPUTS = re.compile(
    r"Outputs (\S+) beyond \[(\S+), (\S+)\] count as the nearer bound, and a block that fails counts as (\S+)\."
)
FAILS = re.compile(r"A block that fails, or gives no label that is known, (has no vote|votes for \S+)\.")
MEANT = re.compile(
    r"(± covers the ((noise|bin) only(, not how much the blocks differ|, not which values share a cell)?"
    r"|noise and what the bounded memory may have missed), (?:not|nor) what this leaves out)?"
    r"(; t|T)?(he owner can .*)?\."
)
UNSEEN = re.compile(r"What a unit has beyond the largest candidate is not seen: left_out and share are lower bounds\.")
ABSENT = re.compile(
    r"Combinations (whose noisy count is below [\d,]+ are left out|are a sample): one that is absent may have rows"
    r"(, but rarely [\d,]+ or more|; value\.count\(\) allows for that)\."
)
EMPTY = re.compile(
    r"At most about [\d.,e+-]+ released combinations are expected to have no row at all; "
    r"the error bars allow for that\."
)
CREDITED = re.compile(
    r"Values that cannot be credited to any \w+ within the released limit of at most [\d,]+ are left out, so the lower "
    r"end holds for all values and the upper end for those that are credited\."
)
RARE = re.compile(r"Values whose noisy counter stands for fewer than [\d,]+ rows are left out\.")
SMOOTHED = re.compile(r"Frequencies that are not kept are dropped, so jumps and single peaks are smoothed away\.")
OUTSIDE = re.compile(r"Rows (outside the bounds of the map or )?without a coordinate are left out\.")
MEASURED = re.compile(
    r"Bars of measured queries come from their noise; all others hold at once, by how well the last pick was known\."
)
MADE_UP = re.compile(
    r"Rows are made up from noisy tables of single columns and of some pairs; answer\.value\.quality says which, and "
    r"how far off they may be\."
)
PATTERNS = [
    OUTSIDE, SMOOTHED, ABSENT, CREDITED, EMPTY, RARE, MEASURED, LIMITED,
    UNDECLARED, NO_GROUP, DISTINCT, SMALL, OUTPUTS, FAILS, MEANT, UNSEEN, MADE_UP,
]  # fmt: skip
PATTERNS.append(
    re.compile(
        r"Rows are selected by noisy numbers, so error bars are so wide that they hold for all.* groups at once\."
    )
)
PATTERNS.append(re.compile(r"Of more than [\d,]+ rows with one value, [\d,]+ count: raise most to count more\."))
PATTERNS.append(
    re.compile(
        r"± covers the noise (of all truncations|and all that dropped frequencies may hold), not what this leaves out; "
        r"the owner can .* in the policy\."
    )
)
QUICK = [name for name in known.VALUES if "apply" not in name]


@pytest.fixture(scope="module")
def clinic():
    tables = {"tables": {"visits": known.RULES, "wards": known.PUBLIC}}
    return nz.open(known.TABLES, budget=nz.Approx(1000, "1e-4"), policy=tables)


def spent(name):
    return known.SPENDS[1] if known.needs_delta(name) else known.SPENDS[0]


@pytest.mark.parametrize("name", known.EVERY)
def test_every_question_says_what_it_leaves_out(clinic, name):
    """A unit with more rows than the limits allow is bounded by every question that has no other way."""
    offer = known.question(name, clinic.schema).offer(clinic.schema, spent(name), nz.Neighbours.ADD_REMOVE, 0.95)
    asked = known.VALUES.get(name)
    by_limits = isinstance(asked, nz.LeftOut) and asked.bounds is None
    unlimited = name.partition(" ")[0] in ("apply", "distinct")  # blocks of units, and credits of each unit
    bounded = not unlimited and not by_limits and name != "per unit"
    for i, sentences in enumerate(offer.caveats):
        said = " ".join(sentences)
        assert ("are used; further rows are left out" in said) == bounded
        read = _read(offer, clinic.schema, i)
        told = re.search(r"age (lies )?beyond \[0, 100\]", said) is not None
        assert told == any(n == "visits.age" and kind.bounded for n, kind in read)
        for sentence in sentences:
            assert any(pattern.fullmatch(sentence) for pattern in (*BEYOND, *PATTERNS)), sentence


def _read(offer, schema, i=0):
    procedure = offer.procedure
    if hasattr(procedure, "relation"):
        return kinds_read(procedure.relation, schema, [full for full, _ in procedure.columns])
    if isinstance(procedure, Measuring):
        return procedure.prepared[i].read
    if hasattr(procedure, "offers"):
        return [one for _, other in procedure.offers for one in _read(other, schema)]
    prepared = procedure.scores.prepared if hasattr(procedure, "scores") else procedure.prepared
    return [one for each in (prepared if isinstance(prepared, tuple) else (prepared,)) for one in each.read]


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("name", [*known.ASKED, *QUICK])
def test_the_same_sentences_stand_everywhere(clinic, name):
    asked = known.VALUES[name] if name in known.VALUES else known.ASKED[name]
    found, answers = clinic.explain(asked, spend=spent(name)), clinic.ask(asked, spend=spent(name))
    for answer, sentences in zip(answers if isinstance(answers, list) else [answers], found.caveats, strict=True):
        assert answer.caveats == sentences
        assert repr(answer).splitlines()[len(repr(answer).splitlines()) - len(sentences) :] == list(sentences)
        assert all(escape(sentence) in answer._repr_html_() for sentence in sentences)
        assert answer.statement.endswith(" ".join(sentences))
        assert json.loads(answer.to_json())["caveats"] == list(sentences)
        shown = " ".join(repr(found).split())
        assert all(" ".join(sentence.split()) in shown for sentence in sentences)
        bars = bool(sentences) and any(column.measured for column in answer.columns)
        assert any(sentence.startswith("±") for sentence in sentences) == bars


@pytest.mark.slow
def test_what_is_read_back_from_a_ledger_says_the_same(tmp_path):
    pyarrow.parquet.write_table(known.VISITS, tmp_path / "visits.parquet")
    rules = {"tables": {"visits": known.RULES}}
    texts = []
    for _ in range(2):
        made = nz.open(
            tmp_path / "visits.parquet", budget=nz.Approx(9, "1e-4"), policy=rules, ledger=tmp_path / "l.sqlite"
        )
        answers = [
            made.ask(asked, spend=1) for asked in ("SELECT SUM(age) AS s FROM visits", nz.TrimmedMean("age", trim=9))
        ]
        texts.append([(a.caveats, {**json.loads(a.to_json()), "spent": None, "ledger": None}) for a in answers])
        assert len(made.budget.entries) == 2
    assert texts[0] == texts[1]
    assert all(caveats for caveats, _ in texts[0])
