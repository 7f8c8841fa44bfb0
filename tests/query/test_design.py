"""Designs keep their promise, choose the better noise, and share what questions have in common."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from tests.query.tables import SCHEMA

from noisette.errors import InputError
from noisette.mechanisms import Gaussian, Geometric, Keep, Threshold
from noisette.privacy import ZCDP, Approx, Neighbours, Pure
from noisette.privacy.guarantee import together
from noisette.query import answer
from noisette.query import design as designing
from noisette.query.design import Design, among
from noisette.query.kind import Kind
from noisette.query.measure import sensitivity
from noisette.query.ranks import ranks
from noisette.query.schema import Column, Limits
from noisette.query.sql import parse
from noisette.questions.parts import queries
from noisette.questions.parts.queries import Queries

PURE, APPROX, CONCENTRATED = Pure(1), Approx(1, "1e-6"), ZCDP("0.1")
LIMITS = [
    Limits(rows=1),
    Limits(rows=7),
    Limits(groups=3, rows_per_group=2),
    Limits(rows=5, groups=40, rows_per_group=1),
]
KNOWN = [
    "SELECT count(*) FROM visits",
    "SELECT ward, count(*), count(distinct patient_id) FROM visits GROUP BY ward",
    "SELECT ward, sum(cost), avg(age), stddev(change) FROM visits WHERE smoker GROUP BY ward",
    "SELECT ward, smoker, count(cost), count(distinct age), avg(cost) FROM visits GROUP BY ward, smoker",
    "SELECT floor, sum(age) FROM visits JOIN wards USING (ward) GROUP BY floor",
    "SELECT sum(value), count(*) FROM visits JOIN labs USING (patient_id)",
    "SELECT avg(least(n, 9)) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS s",
    "SELECT hour, count(*) FROM events GROUP BY hour",
    "SELECT ward, median(age) FROM visits GROUP BY ward",
    "SELECT quantile(cost, 0.9), avg(cost), max(age) FROM visits",
    "SELECT ward, quantile(age, 0.1), median(age), quantile(age, 0.9), min(age), sum(cost) FROM visits GROUP BY ward",
]
UNKNOWN = [
    "SELECT entered, count(*) FROM visits GROUP BY entered",
    "SELECT entered, count(distinct patient_id), sum(cost) FROM visits GROUP BY entered",
    "SELECT DISTINCT entered FROM visits",
    "SELECT entered, ward, avg(age) FROM visits GROUP BY entered, ward",
]


def limited(limits):
    """The schema with other limits for all persons."""
    return {name: replace(table, limits=limits) if table.unit else table for name, table in SCHEMA.items()}


def offered(*texts, spend, neighbours=Neighbours.ADD_REMOVE, schema=SCHEMA):
    return Queries(tuple(parse(text, schema) for text in texts)).offer(schema, spend, neighbours, 0.95)


def designed(*texts, **options) -> Design:
    return offered(*texts, **options).procedure.design


# The promise is kept

CASES = [(text, spend) for text in KNOWN for spend in (PURE, APPROX, CONCENTRATED)]
CASES += [(text, APPROX) for text in UNKNOWN]


@pytest.mark.parametrize("neighbours", Neighbours, ids=str)
@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize(("text", "spend"), CASES)
def test_the_guarantee_is_within_the_promise(text, spend, limits, neighbours):
    design = designed(text, spend=spend, neighbours=neighbours, schema=limited(limits))
    assert design.guarantee.neighbours is neighbours
    assert design.guarantee <= spend


@pytest.mark.parametrize(("text", "spend"), CASES)
def test_whatever_is_drawn_is_charged(text, spend):
    """What vouches for bars, too: the guarantee is that of all mechanisms on all measures, one by one."""
    design = designed(text, spend=spend, schema=limited(LIMITS[2]))
    (task,), one_by_one = design.tasks, []
    drawn = [(design.noise[0, measure], measure, None) for measure in task.noised]
    for (_, measure, _), one in design.quantiles.items():
        drawn += [(mechanism, measure, one) for mechanism in one.mechanisms]
    for mechanism, measure, one in drawn:
        change = sensitivity(measure, task.part, Neighbours.ADD_REMOVE)
        one_by_one.append(mechanism.guarantee(change if one is None else one.moved(change)))
    one_by_one += [rule.guarantee(neighbours=Neighbours.ADD_REMOVE) for rule in design.keys.values()]
    assert together(one_by_one).under(Neighbours.ADD_REMOVE) <= design.guarantee


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("spend", [Pure("0.01"), Pure(20), Approx(5, "1e-9"), Approx("1/50", "1e-3"), ZCDP(3)], ids=str)
@pytest.mark.parametrize("neighbours", Neighbours, ids=str)
def test_a_batch_keeps_one_promise(spend, neighbours):
    texts = [*KNOWN[:7], *(UNKNOWN if isinstance(spend, Approx) else [])]
    design = designed(*texts, spend=spend, neighbours=neighbours, schema=limited(LIMITS[2]))
    assert design.guarantee <= spend


@pytest.mark.parametrize(("text", "spend"), [(KNOWN[2], PURE), (KNOWN[2], APPROX), (KNOWN[2], CONCENTRATED)])
def test_little_is_left_over(text, spend):
    """A promise smaller by a twentieth is broken: nothing is wasted. And so it is found if noise is too small."""
    design = designed(text, spend=spend)
    less = Fraction(19, 20)
    smaller = ZCDP(spend.rho * less) if isinstance(spend, ZCDP) else replace_epsilon(spend, less)
    assert not design.guarantee <= smaller


def replace_epsilon(spend, factor):
    return Pure(spend.epsilon * factor) if isinstance(spend, Pure) else Approx(spend.epsilon * factor, spend.delta)


@pytest.mark.parametrize("spend", [PURE, APPROX, CONCENTRATED], ids=str)
def test_noise_of_four_fifths_breaks_the_promise(spend):
    design = designed(KNOWN[2], spend=spend)
    (task,) = design.tasks
    costs = []
    for (_, measure), mechanism in design.noise.items():
        size = Fraction(4, 5)
        weak = (
            Gaussian(mechanism.sigma * size) if isinstance(mechanism, Gaussian) else Geometric(mechanism.scale * size)
        )
        costs.append(weak.guarantee(sensitivity(measure, task.part, Neighbours.ADD_REMOVE)))
    total = costs[0]
    for cost in costs[1:]:
        total = total + cost
    assert not total <= spend


# Which noise


def kinds(design):
    return {type(mechanism) for mechanism in design.noise.values()}


@pytest.mark.parametrize("spend", [APPROX, CONCENTRATED], ids=str)
def test_gaussian_noise_where_a_unit_is_in_many_groups_and_laplace_where_it_is_in_few(spend):
    text = "SELECT age, count(*) FROM visits GROUP BY age"
    assert kinds(designed(text, spend=spend, schema=limited(Limits(groups=60, rows_per_group=1)))) == {Gaussian}
    few = designed(text, spend=spend, schema=limited(Limits(rows=1)))
    assert kinds(few) == {Gaussian if isinstance(spend, ZCDP) else Geometric}  # a rho always prefers Gaussian noise


@pytest.mark.parametrize("text", KNOWN[:7])
def test_a_pure_promise_has_laplace_noise(text):
    design = designed(text, spend=PURE, schema=limited(Limits(groups=60, rows_per_group=1)))
    assert kinds(design) == {Geometric}
    assert "pure" in design.why.lower()


@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_the_noise_that_errs_less_is_chosen(limits):
    both = [designed(KNOWN[3], spend=spend, schema=limited(limits)) for spend in (PURE, APPROX)]
    errors = [max(mechanism.variance() for mechanism in design.noise.values()) for design in both]
    assert errors[1] <= errors[0] * (1 + 1e-9)


# Batches


def test_a_question_asked_twice_is_measured_once_with_the_same_error():
    text = "SELECT ward, count(*) AS n FROM visits GROUP BY ward"
    other = "SELECT ward, count(*) AS m FROM visits GROUP BY ward ORDER BY m"
    once, twice = offered(text, spend=PURE), offered(text, other, spend=PURE)
    assert once.procedure.design.noise == twice.procedure.design.noise
    assert [column.half_width for columns in twice.expected() for column in columns] == [
        once.expected()[0][0].half_width
    ] * 2


def test_a_batch_shares_measures():
    """COUNT(x) is part of AVG(x), and a mean asked twice is one."""
    texts = ("SELECT ward, avg(cost) FROM visits GROUP BY ward", "SELECT ward, count(cost) FROM visits GROUP BY ward")
    design = designed(*texts, spend=PURE)
    assert len(design.tasks) == 1
    assert sorted(measure.what for _, measure in design.noise) == ["count", "sum"]


def test_different_rows_are_different_tasks():
    texts = ("SELECT count(*) FROM visits WHERE age > 1", "SELECT count(*) FROM visits")
    design = designed(*texts, spend=PURE)
    assert len(design.tasks) == len(design.noise) == 2
    assert design.guarantee <= PURE
    (alone,) = designed(texts[0], spend=PURE).noise.values()
    assert all(mechanism.scale == 2 * alone.scale for mechanism in design.noise.values())


def test_an_empty_batch_is_refused():
    with pytest.raises(InputError, match="at least one"):
        Queries(()).offer(SCHEMA, PURE, Neighbours.ADD_REMOVE, 0.95)


# Unknown keys


@pytest.mark.parametrize("spend", [PURE, CONCENTRATED, Approx(1, 0)], ids=str)
@pytest.mark.parametrize("text", UNKNOWN)
def test_unknown_keys_need_a_delta(text, spend):
    with pytest.raises(InputError, match="delta"):
        designed(text, spend=spend)


def test_only_keys_are_told_by_the_optimal_rule_and_counts_of_units_by_a_threshold():
    schema = limited(Limits(rows=1))
    assert [type(rule) for rule in designed(UNKNOWN[2], spend=APPROX, schema=schema).keys.values()] == [Keep]
    assert [type(rule) for rule in designed(UNKNOWN[0], spend=APPROX, schema=schema).keys.values()] == [Threshold]


@pytest.mark.parametrize("neighbours", Neighbours, ids=str)
@pytest.mark.parametrize(("groups", "noise"), [(1, "truncated"), (2, "truncated"), (20, "gaussian")])
def test_the_noise_of_unknown_keys_has_the_least_product_of_threshold_and_error(groups, noise, neighbours):
    schema = limited(Limits(groups=groups, rows_per_group=1))
    (rule,) = designed(UNKNOWN[0], spend=APPROX, neighbours=neighbours, schema=schema).keys.values()
    promise = rule.guarantee(neighbours=neighbours)
    assert rule.noise == noise
    for other in ("geometric", "truncated", "gaussian"):
        m = Threshold.calibrated(Approx(1, "1e-6", neighbours=neighbours), groups=groups, noise=other)
        assert rule.threshold**2 * rule.variance() <= m.threshold**2 * m.variance() * (1 + 1e-9)
    assert promise <= APPROX


@pytest.mark.parametrize("neighbours", Neighbours, ids=str)
def test_only_keys_of_units_in_many_groups_are_told_by_gaussian_noise(neighbours):
    schema = limited(Limits(groups=20, rows_per_group=1))
    (rule,) = designed(UNKNOWN[2], spend=APPROX, neighbours=neighbours, schema=schema).keys.values()
    optimal = Keep.calibrated(Approx(1, "1e-6", neighbours=neighbours), groups=20)
    assert rule.threshold < optimal.least(0.5)
    assert rule.chance(optimal.least(0.5)) > 0.5
    assert rule.guarantee(neighbours=neighbours) <= APPROX


def test_a_task_that_only_asks_for_keys_has_all_of_delta():
    design = designed(UNKNOWN[2], spend=APPROX)
    assert design.guarantee <= APPROX
    assert not design.guarantee <= Approx(1, "5e-7")


# Refusals come before any noise


@pytest.mark.parametrize(
    ("limits", "text", "word"),
    [
        (Limits(), KNOWN[0], "rows"),
        (Limits(rows_per_group=1), KNOWN[1], "groups"),
        (Limits(groups=3), KNOWN[1], "rows"),
        (Limits(groups=3), KNOWN[0], "rows"),
    ],
)
def test_limits_that_say_too_little_are_refused(limits, text, word):
    with pytest.raises(InputError, match=word):
        designed(text, spend=PURE, schema=limited(limits))


def test_sums_need_bounds():
    weight = Column("weight", Kind("real"))
    visits = replace(SCHEMA["visits"], columns=(*SCHEMA["visits"].columns, weight))
    schema = {**SCHEMA, "visits": visits}
    for function in ("sum", "avg", "variance", "median"):
        with pytest.raises(InputError, match="bounds"):
            designed(f"SELECT {function}(weight) FROM visits", spend=PURE, schema=schema)
    assert designed("SELECT count(weight) FROM visits", spend=PURE, schema=schema)


def test_all_parts_are_recorded():
    for (texts, spend), neighbours in product([(KNOWN[:4], PURE), (UNKNOWN[:2], APPROX)], Neighbours):
        design = designed(*texts, spend=spend, neighbours=neighbours)
        assert len(design.parts(neighbours)) == len(design.noise) + len(design.quantiles) + len(design.keys)


def test_quantiles_of_the_same_values_are_read_off_one_tree():
    design = designed(KNOWN[10], spend=PURE)
    parts = design.parts(Neighbours.ADD_REMOVE)
    assert [part["mechanism"] for part in parts] == ["Geometric", "Geometric", "Quantile", "Geometric"]
    assert parts[3]["measure"] == "histogram"
    noise, vouching = design.noise.values()
    (alone,) = designed("SELECT ward, sum(cost) FROM visits GROUP BY ward", spend=PURE).noise.values()
    (rows,) = designed("SELECT ward, count(age) FROM visits GROUP BY ward", spend=PURE).noise.values()
    assert noise.scale == 5 * alone.scale / Fraction(
        9, 10
    )  # three quantiles have three parts, minimum and sum one each
    assert vouching.scale == 10 * rows.scale  # the number of rows that the minimum's bar rests on


def test_quantiles_of_several_questions_are_drawn_together():
    texts = [f"SELECT quantile(age, {q}) FROM visits" for q in (0.4, 0.3, 0.5)]
    assert len(designed(*texts, spend=PURE).quantiles) == 1
    assert len(designed(*texts[:2], spend=PURE).quantiles) == 2
    rows = "SELECT quantile(age, 0.3) FROM visits WHERE smoker"
    assert len(designed(*texts, rows, spend=PURE).quantiles) == 2


BY_WARD = "FROM visits GROUP BY ward"  # A, B, C and NULL
SELECTED = {
    f"SELECT ward, count(*) AS n {BY_WARD}": 1,
    f"SELECT ward, count(*) AS n {BY_WARD} ORDER BY n DESC": 1,
    f"SELECT ward, count(*) AS n {BY_WARD} ORDER BY ward LIMIT 2": 1,
    f"SELECT ward, count(*) AS n {BY_WARD} ORDER BY n LIMIT 4": 1,
    f"SELECT ward, count(*) AS n {BY_WARD} HAVING ward = 'A'": 1,
    f"SELECT ward, count(*) AS n {BY_WARD} ORDER BY n LIMIT 3": 4,
    f"SELECT ward, avg(age) AS n {BY_WARD} HAVING count(*) > 3": 4,
    "SELECT count(*) AS n FROM visits HAVING count(*) > 3": 1,
}


def test_rows_are_selected_among_groups_by_noisy_numbers_alone():
    found = {text: designed(text, spend=PURE).tasks[0].among for text in SELECTED}
    assert found == SELECTED


def test_bars_of_quantiles_hold_for_all_groups_that_rows_are_selected_among():
    text = f"SELECT ward, median(age) AS m {BY_WARD}"
    for selecting in ("ORDER BY m LIMIT 2", "HAVING m > 3"):
        (alone,), (one,) = (designed(t, spend=PURE).quantiles.values() for t in (text, f"{text} {selecting}"))
        (measure,) = {m for _, m, _ in designed(text, spend=PURE).quantiles}
        change = sensitivity(measure, designed(text, spend=PURE).tasks[0].part, Neighbours.ADD_REMOVE)
        share = PURE.share(Fraction(9, 10), delta=0)
        assert one == ranks(measure, Fraction(1, 2), share, change, among(0.95, 4))
        assert one.rows > alone.rows


def medians(many, keys=""):
    return f"SELECT {keys}{', '.join(f'median(age * {n + 1}) AS m{n}' for n in range(many))} FROM visits"


def test_quantiles_of_many_numbers_are_refused_before_anything_is_paid():
    listed = ", ".join(f"quantile(age, 0.{n:03d}) AS q{n}" for n in range(1, 200))
    assert designed(f"SELECT {listed} FROM visits", spend=PURE)  # of one number: it is counted once
    assert designed(medians(100), spend=PURE)
    with pytest.raises(
        InputError, match=r"^This question takes quantiles, or COUNT\(DISTINCT\), of 101 different numbers"
    ):
        designed(medians(101), spend=PURE)
    with pytest.raises(
        InputError, match=r"^This question takes quantiles, or COUNT\(DISTINCT\), of 105 different numbers"
    ):
        designed(medians(35, "ward, smoker, ") + " GROUP BY ROLLUP (ward, smoker)", spend=PURE)
    with pytest.raises(
        InputError, match=r"^This question takes quantiles, or COUNT\(DISTINCT\), of 120 different numbers"
    ):
        designed(medians(60) + " WHERE age > 3", medians(60), spend=PURE)


def each(aggregate, many, keys=""):
    return f"SELECT {keys}{', '.join(aggregate.format(n + 1) + f' AS a{n}' for n in range(many))} FROM visits"


HEAVY = {
    "COUNT(DISTINCT age * {0})": (100, "or COUNT(DISTINCT), of 101 different numbers"),
    "SUM(age * {0})": (400, "measures 401 numbers of each group"),
    "CORR(age * {0}, age + {0})": (66, "measures 402 numbers of each group"),
    "COUNT(*) FILTER (WHERE age > {0})": (400, "measures 401 numbers of each group"),
}


def refused(text, monkeypatch):
    """What a design says of the work of a question, without finding its noise; None where it goes on."""

    def only_check(tasks, *_):
        designing._check_work(tasks)
        raise LookupError

    monkeypatch.setattr(queries, "design", only_check)
    try:
        designed(text, spend=PURE)
    except InputError as error:
        return str(error)
    except LookupError:
        return None


@pytest.mark.parametrize("aggregate", HEAVY)
def test_what_would_take_long_to_measure_is_refused_before_anything_is_paid(aggregate, monkeypatch):
    most, refusal = HEAVY[aggregate]
    assert refused(each(aggregate, most), monkeypatch) is None
    assert refusal in refused(each(aggregate, most + 1), monkeypatch)


def test_a_bound_on_quantiles_alone_is_convicted(monkeypatch):
    """The twin that was here: what it let pass took an engine half a minute, for fifty rows, after the charge."""
    monkeypatch.setattr(designing, "_MOST_NUMBERS", 10**6)
    monkeypatch.setattr(designing, "_READ_EACH", ("histogram",))
    assert [refused(each(aggregate, most + 1), monkeypatch) for aggregate, (most, _) in HEAVY.items()] == [None] * 4


def test_what_to_expect_of_many_columns_looks_at_each_noise_once(monkeypatch):
    looked = []
    original = answer._noise
    monkeypatch.setattr(answer, "_noise", lambda *given: looked.append(given) or original(*given))
    text = f"SELECT {', '.join(f'sum(age * {n + 1}) AS s{n}' for n in range(20))} FROM visits"
    offer = offered(text, spend=PURE)
    looked.clear()
    [expected] = offer.expected()
    assert len(expected) == 20
    assert 20 <= len(looked) <= 2 * 20  # 20 * 20 if each column looked at all of them
