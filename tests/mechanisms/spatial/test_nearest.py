"""Who is nearest: rings counted by brute force, laws by definition, all small towns and their neighbours, twins."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.goodness import ALPHA, p_value
from tests.tapes import Script

import noisette as nz
from noisette.accuracy.nearest import good, town
from noisette.audit.divergence import largest_loss
from noisette.errors import InputError, PrivacyError
from noisette.mechanisms import calibrate
from noisette.mechanisms.quantiles.quantile import Quantile
from noisette.mechanisms.selection.exponential import Exponential
from noisette.mechanisms.spatial.annuli import Rectangle, Weighted
from noisette.mechanisms.spatial.nearest_place import NearestPlace, nearest_of
from noisette.mechanisms.spatial.nearest_radius import NearestRadius

ADD_REMOVE, REPLACE = nz.Neighbours
NOBODY = np.empty((0, 2), np.int64)


def points_of(columns, rows):
    return [(x, y) for y in range(rows[0], rows[1] + 1) for x in range(columns[0], columns[1] + 1)]


def square(a, b):
    return (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2


def rank_error(k, people, distance):
    """The definition, person by person."""
    nearer, upto = sum(d < distance for d in people), sum(d <= distance for d in people)
    return 0 if nearer <= k <= upto else min(abs(nearer - k), abs(upto - k))


def by_definition(m, people, weight=lambda _: 1):
    """P(each point), from squared distances of people alone."""
    theirs = [square(person, m.place) for person in people]
    weights = {
        y: weight(y) * math.exp(-rank_error(m.k, theirs, square(y, m.place)) / m.scale)
        for y in points_of(m.columns, m.rows)
    }
    total = math.fsum(weights.values())
    return {y: w / total for y, w in weights.items()}


def table(people):
    return np.array(people, np.int64).reshape(-1, 2)


# Rings

RECTANGLES = [
    Rectangle((0, 4), (0, 4), (0, 0)),
    Rectangle((0, 4), (0, 4), (2, 3)),
    Rectangle((-3, 5), (7, 8), (4, 7)),
    Rectangle((2, 2), (-4, 4), (2, 1)),
    Rectangle((10, 16), (0, 0), (16, 0)),
]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("r", RECTANGLES, ids=repr)
def test_rings_are_counted_and_walked_point_by_point(r):
    squares = Counter(square(y, r.place) for y in points_of(r.columns, r.rows))
    levels = np.arange(-1, r.farthest + 3)
    assert r.farthest == max(squares)
    assert r.upto(levels).tolist() == [sum(n for s, n in squares.items() if s <= level) for level in levels]
    for after, upto in itertools.combinations(range(-1, r.farthest + 1), 2):
        ring = [r.point(after, upto, u) for u in range(int(np.diff(r.upto(np.array([after, upto])))[0]))]
        assert ring == sorted(ring, key=lambda y: y[1])
        assert set(ring) == {y for y in points_of(r.columns, r.rows) if after < square(y, r.place) <= upto}
        assert len(set(ring)) == len(ring)


@pytest.mark.parametrize("r", RECTANGLES, ids=repr)
def test_weighted_rings_count_a_point_by_its_weight(r):
    weights = np.arange(1, r.count + 1) ** 2 % 7 + 1
    w = Weighted(r, weights)
    of = dict(zip(points_of(r.columns, r.rows), weights.tolist(), strict=True))
    for after, upto in itertools.combinations(range(-1, r.farthest + 1), 2):
        ring = Counter(w.point(after, upto, u) for u in range(int(np.diff(w.upto(np.array([after, upto])))[0])))
        assert ring == {y: n for y, n in of.items() if after < square(y, r.place) <= upto}


@pytest.mark.slow
def test_a_million_rows_are_counted_as_by_whole_roots():
    r = Rectangle((0, 2**20 - 1), (0, 2**20 - 1), (2**20 - 1, 3))
    for s in (r.farthest - 1, 12345678901):
        halves = (math.isqrt(s - v * v) for v in range(-3, min(2**20 - 3, math.isqrt(s) + 1)) if v * v <= s)
        assert r.upto(np.array([s])).tolist() == [sum(min(h, 2**20 - 1) + 1 for h in halves)]


def test_roots_of_squares_and_of_their_neighbours_are_told_apart():
    """What the rings rely on: floats are precise enough for the largest rectangle."""
    m = np.arange(2**20 - 2000, 2**20 + 2000, dtype=np.int64) * 14142 // 10000
    for step in (-1, 0, 1):
        assert (np.sqrt(m * m + step).astype(np.int64) == [math.isqrt(int(s)) for s in m * m + step]).all()


# The law


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("people", [[], [(0, 0)], [(3, 1)] * 3, [(1, 2), (0, 1), (4, 3), (4, 4), (2, 2)]], ids=str)
def test_the_law_is_that_of_rank_errors(k, people):
    m = NearestPlace("3/2", k=k, columns=(0, 4), rows=(0, 4), place=(1, 2))
    law = m.outcomes(table(people))
    assert law == pytest.approx(by_definition(m, people), rel=1e-12)
    assert list(law) == points_of(m.columns, m.rows)


def test_a_prior_multiplies_the_law():
    weights = ((3, 1, 4), (1, 5, 9))
    m = NearestPlace(2, k=2, columns=(5, 7), rows=(1, 2), place=(5, 1), prior=weights)
    people = [(5, 1), (6, 2), (7, 2)]
    assert m.outcomes(people) == pytest.approx(
        by_definition(m, people, lambda y: weights[y[1] - 1][y[0] - 5]), rel=1e-12
    )


@pytest.mark.parametrize("radii", [None, (0, 1, 4, 9, 16), (2, 30)], ids=str)
@pytest.mark.parametrize("k", [1, 3])
def test_the_radius_is_the_quantile_mechanism_aimed_at_rank_k(radii, k):
    m = NearestRadius(3, k=k, columns=(0, 4), rows=(0, 4), place=(0, 1), radii=radii)
    people = [(0, 0), (1, 2), (2, 2), (2, 0), (0, 4), (1, 1), (3, 1)]
    outcomes = list(range(26)) if radii is None else list(radii)
    cells = [next(i for i, r in enumerate(outcomes) if square(p, (0, 1)) <= r) for p in people]
    histogram = np.bincount(cells, minlength=len(outcomes))
    other = Quantile("2/3", q=0, cells=len(outcomes), shift=k)
    assert list(m.outcomes(people)) == outcomes
    assert list(m.outcomes(people).values()) == pytest.approx(other.pmf(np.arange(len(outcomes)), histogram), rel=1e-12)


def test_radii_that_do_not_reach_everyone():
    m = NearestRadius(1, k=2, columns=(0, 4), rows=(0, 0), place=(0, 0), radii=(0, 1))
    assert m.outcomes([(3, 0)] * 5) == pytest.approx({0: 0.5, 1: 0.5})  # both are two people short
    assert m.outcomes([(0, 0), (0, 0), (4, 0)]) == pytest.approx({0: 0.5, 1: 0.5})  # the second one spans 2 .. 2
    assert {m([(3, 0)] * 5) for _ in range(100)} == {0, 1}


def test_people_outside_count_as_at_the_border():
    m = NearestPlace(2, k=1, columns=(0, 3), rows=(0, 3), place=(0, 0))
    assert m.outcomes([(9, 1), (-5, 2**70), (-(2**90), -1)]) == m.outcomes([(3, 1), (0, 3), (0, 0)])


def test_only_distances_from_the_place_matter():
    m = NearestPlace(2, k=2, columns=(0, 2), rows=(0, 2), place=(1, 1))
    assert m.outcomes([(0, 0), (1, 0)]) == m.outcomes([(2, 1), (2, 2)])


# The theorem: all small towns, all neighbours


def laws_of_towns(law_of, points, most):
    """The logarithms of the laws of all towns of up to so many people."""
    towns = (t for n in range(most + 1) for t in itertools.combinations_with_replacement(points, n))
    with np.errstate(divide="ignore"):
        return {t: np.log(list(law_of(table(t)).values())) for t in towns}


def neighbours(people, points, relation):
    if relation is ADD_REMOVE:
        return (tuple(sorted((*people, p))) for p in points)
    return (tuple(sorted((*people[:i], *people[i + 1 :], p))) for i in range(len(people)) for p in points)


def worst_loss(laws, points, relation):
    """The largest log-ratio of all neighbours, in both directions."""
    worst = 0.0
    for people, one in laws.items():
        for other in neighbours(people, points, relation):
            if other in laws:
                with np.errstate(invalid="ignore"):
                    worst = max(worst, float(np.nanmax(np.abs(one - laws[other]))))
    return worst


KINDS = [
    NearestPlace(4, k=1, columns=(0, 4), rows=(0, 4), place=(0, 0)),
    NearestPlace(4, k=2, columns=(0, 4), rows=(0, 4), place=(0, 0)),
    NearestPlace(2, k=2, columns=(0, 4), rows=(0, 4), place=(1, 3)),
    NearestPlace(1, k=1, columns=(0, 4), rows=(0, 4), place=(4, 0)),
    NearestRadius(4, k=1, columns=(0, 4), rows=(0, 4), place=(0, 0)),
    NearestRadius(2, k=2, columns=(0, 4), rows=(0, 4), place=(0, 2)),
    NearestRadius(3, k=2, columns=(0, 4), rows=(0, 4), place=(2, 2), radii=(0, 1, 2, 4, 5, 8)),
]


def representatives(m):
    """One point for each distance: the law knows no more of a person."""
    return sorted({square(y, m.place): y for y in points_of(m.columns, m.rows)}.values())


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("m", KINDS, ids=repr)
def test_all_towns_of_three_on_25_points_keep_epsilon(m, relation):
    points = representatives(m)
    worst = worst_loss(laws_of_towns(m.outcomes, points, 3), points, relation)
    assert 0.75 * float(m.guarantee().epsilon) < worst <= float(m.guarantee().epsilon) * (1 + 1e-9)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_all_towns_of_four_on_nine_points_keep_epsilon(relation):
    points = points_of((0, 2), (0, 2))
    for m in (
        NearestPlace(2, k=1, columns=(0, 2), rows=(0, 2), place=(1, 0)),
        NearestPlace(2, k=2, columns=(0, 2), rows=(0, 2), place=(0, 0), prior=((1, 2, 3), (1, 9, 1), (5, 1, 1))),
    ):
        worst = worst_loss(laws_of_towns(m.outcomes, points, 4), points, relation)
        assert 0.6 * float(m.guarantee().epsilon) < worst <= float(m.guarantee().epsilon) * (1 + 1e-9)


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_the_guarantee_is_tight_on_larger_grids(relation):
    """By 26 people on 40 x 40 points: two of them are all it takes."""
    m = NearestPlace(4, k=25, columns=(0, 39), rows=(0, 39), place=(0, 0))
    crowd = [(1, 0)] * 25
    one, other = ([*crowd, (39, 39)], [*crowd, (0, 0)]) if relation is REPLACE else (crowd, [*crowd, (0, 0)])
    loss = largest_loss(*(np.array(list(m.outcomes(x).values())) for x in (one, other)))
    assert 0.998 < loss / float(m.guarantee().epsilon) <= 1


@pytest.mark.parametrize("m", KINDS, ids=repr)
def test_what_pairs_show_is_what_is_stated(m):
    shown = [
        largest_loss(*(np.array(list(m.outcomes(z).values())) for z in (x, y))) / float(m.guarantee(d).epsilon)
        for x, y, d in m.pairs()
    ]
    assert shown == pytest.approx([m.tightness] * 2, rel=1e-9)


def test_half_the_sensitivity_is_convicted():
    m, claimed = NearestPlace.calibrated(nz.Pure(2), k=1, columns=(0, 4), rows=(0, 4), place=(0, 0)), 1
    points = representatives(m)
    assert worst_loss(laws_of_towns(m.outcomes, points, 2), points, ADD_REMOVE) > 1.5 * claimed


SMALL = NearestPlace(1, k=1, columns=(0, 2), rows=(0, 2), place=(0, 0))


STREET = (0, 4), (0, 0)


def minus_distance(scale):
    """The exponential mechanism whose score is minus the distance from the person nearest to the place."""

    def law(people):
        nearest = min(map(tuple, people.tolist()), key=lambda p: square(p, (0, 0)), default=(4, 0))
        scores = [-math.isqrt(square(y, nearest)) for y in points_of(*STREET)]
        return dict(enumerate(Exponential(scale, candidates=5).pmf(np.arange(5), scores)))

    return law


def test_minus_the_distance_has_the_diameter_for_its_sensitivity():
    """To claim 1 is convicted at once; the diameter of this street, 4 steps, keeps its epsilon, as ranks do."""
    points = points_of(*STREET)
    claimed, honest = (laws_of_towns(minus_distance(2 * sensitivity), points, 3) for sensitivity in (1, 4))
    ranks = laws_of_towns(NearestPlace(2, k=1, columns=(0, 4), rows=(0, 0), place=(0, 0)).outcomes, points, 3)
    for relation in (ADD_REMOVE, REPLACE):
        assert worst_loss(claimed, points, relation) > 1.9  # of 1
        assert 0.4 < worst_loss(honest, points, relation) <= 1
        assert 0.7 < worst_loss(ranks, points, relation) <= 1


def rings_regardless_of_size(people):
    """A broken twin that chooses a ring of the data by its score alone, and then a point of it."""
    squares = np.array([square(y, (0, 0)) for y in points_of((0, 2), (0, 2))])
    edges, errors = SMALL._pieces(np.array([square(p, (0, 0)) for p in people.tolist()], np.int64))
    law = np.zeros(9)
    for after, upto, error in zip(edges[:-1], edges[1:], errors, strict=True):
        ring = (after < squares) & (squares <= upto)
        if ring.any():
            law[ring] = math.exp(-int(error)) / ring.sum()
    return dict(enumerate(law / law.sum()))


def only_where_people_are(people):
    """A broken twin that names the k-th nearest's own ring among those of people."""
    law = np.array(list(SMALL.outcomes(people).values()))
    own = {square(p, (0, 0)) for p in people.tolist()}
    law *= [not own or square(y, (0, 0)) in own for y in points_of((0, 2), (0, 2))]
    return dict(enumerate(law / law.sum()))


def test_rings_must_count_by_their_points_and_be_open_to_nobody():
    points = points_of((0, 2), (0, 2))
    assert worst_loss(laws_of_towns(SMALL.outcomes, points, 3), points, ADD_REMOVE) <= 2
    assert worst_loss(laws_of_towns(rings_regardless_of_size, points, 3), points, ADD_REMOVE) > 2.1
    assert worst_loss(laws_of_towns(only_where_people_are, points, 2), points, ADD_REMOVE) == math.inf


# Why "minus the distance" is useless


def test_in_a_town_ranks_answer_and_minus_the_distance_does_not():
    m = NearestPlace.calibrated(nz.Pure(1), k=20, columns=(0, 119), rows=(0, 79), place=(48, 52))
    ranks, distance = good(m, town())
    assert ranks > 0.99
    assert distance < 0.04
    theirs = np.sort([square(p, m.place) for p in town().tolist()])
    fine = {y for y in m.outcomes(town()) if theirs[9] <= square(y, m.place) <= theirs[30]}
    assert math.fsum(p for y, p in m.outcomes(town()).items() if y in fine) == pytest.approx(ranks, rel=1e-9)
    assert len(fine) / 9600 == pytest.approx(distance, rel=0.4)  # about what a point drawn evenly would do


def test_more_people_help_ranks_and_not_minus_the_distance():
    there = {"columns": (0, 119), "rows": (0, 79), "place": (48, 52)}
    few, many = (good(NearestPlace(2, k=n // 50, **there), town(n)) for n in (250, 4000))
    assert few[0] < 0.85
    assert many[0] > 1 - 1e-8
    assert many[1] == pytest.approx(few[1], rel=0.3)
    assert many[1] < 0.04


# The sampler

RNG = np.random.default_rng(7)  # tables, not noise
DRAWN = {
    "some": (NearestPlace(2, k=3, columns=(0, 5), rows=(0, 4), place=(2, 1)), RNG.integers(0, 5, (12, 2))),
    "nobody": (NearestPlace(2, k=3, columns=(0, 5), rows=(0, 4), place=(2, 1)), NOBODY),
    "too few": (NearestPlace(2, k=9, columns=(0, 5), rows=(0, 4), place=(2, 1)), RNG.integers(0, 5, (4, 2))),
    "outside": (NearestPlace(2, k=3, columns=(0, 5), rows=(0, 4), place=(2, 1)), RNG.integers(-3, 9, (12, 2))),
    "ties": (NearestPlace("1/2", k=40, columns=(0, 3), rows=(0, 3), place=(0, 0)), np.full((99, 2), 2)),
    "prior": (
        NearestPlace(3, k=2, columns=(0, 2), rows=(0, 1), place=(1, 1), prior=((1, 50, 9), (30, 2, 7))),
        RNG.integers(0, 3, (5, 2)),
    ),
    "crowded": (NearestPlace("1/4", k=300, columns=(0, 39), rows=(0, 9), place=(7, 3)), RNG.integers(0, 40, (900, 2))),
    "radius": (NearestRadius(2, k=3, columns=(0, 5), rows=(0, 4), place=(2, 1)), RNG.integers(0, 5, (12, 2))),
    "no radius": (NearestRadius(2, k=3, columns=(0, 5), rows=(0, 4), place=(2, 1)), NOBODY),
    "radii": (
        NearestRadius(2, k=3, columns=(0, 5), rows=(0, 4), place=(2, 1), radii=(0, 3, 5, 12)),
        RNG.integers(0, 5, (12, 2)),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", DRAWN)
def test_draws_follow_the_law(case):
    m, people = DRAWN[case]
    law, draws = m.outcomes(people), Counter(m(people) for _ in range(1500))
    assert set(draws) <= set(law)
    assert p_value([draws[y] for y in law], list(law.values())) > ALPHA


@pytest.mark.slow
def test_pieces_far_off_are_not_counted_but_drawn():
    """All but a few pieces are bounded from above; a window of one piece gives the same law, in longer time."""
    m, people = DRAWN["crowded"]
    errors = m._pieces(m._levels(people))[1]
    first, last = m._window(errors)
    assert 0 < first < last < len(errors)

    class Narrow(NearestPlace):
        def _window(self, errors):
            return int(errors.argmin()), int(errors.argmin()) + 1

    narrow = Narrow(20, k=4, columns=(0, 5), rows=(0, 4), place=(2, 1))
    people = DRAWN["some"][1]
    law, draws = narrow.outcomes(people), Counter(narrow(people) for _ in range(600))
    assert p_value([draws[y] for y in law], list(law.values())) > ALPHA


@pytest.mark.slow
def test_half_the_noise_is_told_apart():
    m, people = DRAWN["some"]
    draws = Counter(m(people) for _ in range(2000))
    other = NearestPlace(1, k=3, columns=(0, 5), rows=(0, 4), place=(2, 1)).outcomes(people)
    assert p_value([draws[y] for y in other], list(other.values())) < ALPHA


def test_outcomes_are_plain():
    place, people = DRAWN["some"]
    assert [type(v) for v in (place(people), *place(people), DRAWN["radius"][0](people))] == [tuple, int, int, int]
    assert type(DRAWN["radii"][0](people)) is int
    assert {type(v) for v in DRAWN["prior"][0](people)} == {int}


@pytest.mark.slow
def test_a_million_people_in_a_country():
    m = NearestPlace.calibrated(nz.Pure(1), k=1000, columns=(0, 10**4), rows=(0, 10**4), place=(5000, 100))
    people = np.random.default_rng(3).integers(0, 10**4, (10**6, 2))
    x, y = m(people)
    squares = ((people - (5000, 100)) ** 2).sum(axis=1)
    assert abs(int((squares <= square((x, y), m.place)).sum()) - 1000) < 100


# What to expect


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("m", [KINDS[2], KINDS[6], DRAWN["prior"][0]], ids=repr)
def test_errors_are_within_the_interval_for_all_small_towns(m):
    points, level = representatives(m), 0.75
    t = m.interval(level)
    for n in range(3):
        for people in itertools.combinations_with_replacement(points, n):
            theirs = [square(p, m.place) for p in people]
            law = m.outcomes(table(people))
            errors = {y: m.error(y, table(people)) for y in law}
            assert min(errors.values()) == 0
            assert math.fsum(p for y, p in law.items() if errors[y] <= t) >= level
            if isinstance(m, NearestPlace):
                true = {y: rank_error(m.k, theirs, square(y, m.place)) for y in law}
                assert errors == {y: e - min(true.values()) for y, e in true.items()}


def test_fewer_outcomes_err_less():
    there = {"k": 20, "columns": (0, 999), "rows": (0, 999), "place": (0, 0)}
    every, some = NearestRadius(2, **there), NearestRadius(2, **there, radii=[4**i for i in range(11)])
    assert some.interval() < every.interval() / 2
    assert NearestPlace(2, **there).interval() < every.interval()  # 999,999 others, not 1,996,002


def test_the_nearest_public_place():
    places = [(0, 0), (5, 5), (3, 9), (5, 5)]
    for point in points_of((-2, 8), (-2, 12)):
        assert nearest_of(point, places) == min(range(4), key=lambda i: math.dist(point, places[i]))
    with pytest.raises(InputError, match="at least one"):
        nearest_of((0, 0), [])


# Calibration and refusals

GIVEN = {"k": 5, "columns": (0, 9), "rows": (0, 4), "place": (3, 3)}


@pytest.mark.parametrize("kind", [NearestPlace, NearestRadius])
@given(st.fractions("1/100", 20, max_denominator=1000), st.integers(1, 9))
def test_what_is_asked_for_is_kept_exactly(kind, epsilon, people):
    m = calibrate(kind, epsilon, sensitivity=people, **GIVEN)
    assert m.guarantee(people) == nz.Pure(epsilon)
    assert m.guarantee(0) == nz.Pure(0)
    rho = calibrate(kind, nz.ZCDP(epsilon), sensitivity=people, **GIVEN)
    assert rho.guarantee(people) <= nz.ZCDP(epsilon)
    assert rho.scale < 2 * people / Fraction(math.sqrt(8 * epsilon)) * Fraction(1000001, 1000000)


def test_relations_are_carried_and_cost_the_same():
    m = NearestPlace(4, **GIVEN)
    for relation in nz.Neighbours:
        for one in (nz.sensitivity.count, nz.sensitivity.histogram):
            assert m.guarantee(one(neighbours=relation)) == nz.Pure("1/2", neighbours=relation)
        assert m.guarantee(nz.sensitivity.histogram(neighbours=relation).times(3)).epsilon == Fraction(3, 2)
    with pytest.raises(PrivacyError):
        NearestPlace.calibrated(nz.Pure(1, neighbours=ADD_REMOVE), nz.sensitivity.count(neighbours=REPLACE), **GIVEN)


BAD = [
    [[]], [1, 2], [(1, 2, 3)], [(1,)], [(1, 2), (3,)], [(1.0, 2)], [(1, 2.5)], [(1, math.nan)],
    [(1, None)], [("1", 2)], [(1, True)], (1, 2), None, "", True, 3, math.nan, {"x": 1}, np.ma.masked_array([(1, 2)]),
]  # fmt: skip


@pytest.mark.parametrize("kind", [NearestPlace, NearestRadius])
@pytest.mark.parametrize("people", BAD, ids=repr)
def test_bad_people_are_refused_before_any_coin_is_drawn(kind, people):
    with pytest.raises(InputError) as error:
        kind(1, **GIVEN)(people, Script())
    assert str(error.value).endswith(".")
    assert ". " not in str(error.value)


@pytest.mark.parametrize(
    "options",
    [
        {"scale": 0}, {"scale": "x"}, {"k": 0}, {"k": -3}, {"k": 2.0}, {"k": True}, {"k": 2**41},
        {"place": (10, 0)}, {"place": (0, -1)}, {"place": 3}, {"place": (1, 2, 3)}, {"place": (1.5, 2)},
        {"columns": (9, 0)}, {"rows": (4, 0)}, {"columns": (0, 2**20)}, {"columns": (0, math.inf)}, {"rows": None},
        {"columns": (3, 3), "rows": (3, 3)}, {"columns": (2**41, 2**41 + 5)}, {"rows": (False, True)},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("kind", [NearestPlace, NearestRadius])
def test_bad_parameters_are_refused(kind, options):
    with pytest.raises(InputError) as error:
        kind(**{"scale": 1, **GIVEN, **options})
    assert str(error.value).endswith(".")


@pytest.mark.parametrize("radii", [[], [4], [4, 4], [9, 4], [-1, 4], [1.5, 4], [1, "4"], [45, 60], [0, 2**62]], ids=str)
def test_bad_radii_are_refused(radii):
    with pytest.raises(InputError):
        NearestRadius(1, **GIVEN, radii=radii)


@pytest.mark.parametrize(
    "prior", [[], [[1] * 10] * 4, [[1] * 9] * 5, [[0] * 10] * 5, [[1.5] * 10] * 5, [[2**40] * 10] * 5], ids=str
)
def test_bad_priors_are_refused(prior):
    with pytest.raises(InputError):
        NearestPlace(1, **GIVEN, prior=prior)


def test_large_grids_are_sampled_but_not_written_out():
    there = {**GIVEN, "columns": (0, 999), "rows": (0, 999)}
    with pytest.raises(InputError, match="65,536"):
        NearestPlace(1, **there).outcomes([(1, 2)])
    with pytest.raises(InputError, match="65,536"):
        NearestPlace(1, **there, prior=[[1]])
    with pytest.raises(InputError, match="65,536"):
        NearestPlace(1, **there).pairs()
    with pytest.raises(InputError, match="fewer radii"):
        NearestRadius(1, **there).outcomes([(1, 2)])
    assert len(NearestRadius(1, **there, radii=(9, 900, 90_000)).outcomes([(1, 2)])) == 3


def test_nothing_is_kept_in_the_mechanism_but_its_fields():
    for m, people in DRAWN.values():
        before = repr(vars(m))
        m(people), m.outcomes(people), m.pairs(), m.tightness
        assert repr(vars(m)) == before
        assert set(vars(m)) == set(m.__dataclass_fields__)


@pytest.mark.parametrize("nobody", [[], (), np.empty((0, 2), np.int64)], ids=repr)
def test_that_nobody_is_there_does_not_show_in_an_error(nobody):
    assert NearestPlace(2, k=1, columns=(0, 4), rows=(0, 4), place=(2, 2))(nobody) is not None
