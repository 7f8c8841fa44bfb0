"""Sensitivities against brute force: every pair of small neighbouring tables, exactly, in every norm."""

import math
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisette.errors import InputError
from noisette.privacy import sensitivity
from noisette.privacy.neighbours import Neighbours
from noisette.privacy.sensitivity import Sensitivity

AR, REPLACE = Neighbours
HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)


def norms(s):
    return s.l1, s.l2_squared, s.linf, s.l0


def longest(differences):
    """The largest l1, l2^2, linf and l0 of some vectors, each by itself."""
    sizes = [[abs(x) for x in vector] for vector in differences] or [[0]]
    return (
        max(sum(v) for v in sizes),
        max(sum(x * x for x in v) for v in sizes),
        max(max(v) for v in sizes),
        max(sum(x != 0 for x in v) for v in sizes),
    )


def brute(f, rows, n, relation):
    """The sensitivity of f on tables of rows: of size n, or under add/remove of sizes up to n."""
    if relation is REPLACE:
        kept = combinations_with_replacement(rows, n - 1)
        pairs = [((*x, a), (*x, b)) for x in kept for a, b in combinations(rows, 2)]
    else:
        kept = [x for size in range(n) for x in combinations_with_replacement(rows, size)]
        pairs = [(x, (*x, a)) for x in kept for a in rows]
    answers = {x: f(x) for pair in pairs for x in pair}
    return longest([[a - b for a, b in zip(answers[x], answers[y], strict=True)] for x, y in pairs])


def grid(low, high, step=1):
    return [low + i * Fraction(step) for i in range(int((high - low) / Fraction(step)) + 1)]


def ball(d, r):
    """Points of a lattice with |x|_2 <= r: r e_1 is one, (r/2, r/2, r/2, r/2) too, and 120 degrees occur."""
    points = [p for p in product(range(-2, 3), repeat=d) if sum(x * x for x in p) <= 4]
    return [tuple(x * Fraction(r) / 2 for x in p) for p in points]


def sums(*features):
    """The answer whose numbers are the sums of these features over the table."""
    return lambda table: [sum((feature(x) for x in table), Fraction(0)) for feature in features]


def columns(k):
    return sums(*(lambda x, i=i: x[i] for i in range(k)))


def centred(bounds, *powers):
    middle = Fraction(sum(bounds)) / 2
    return sums(*(lambda x, p=p: (x - middle) ** p for p in powers))


def mean(table):
    return [Fraction(sum(table)) / len(table)]


def variance(table):
    return [sum((x - m) ** 2 for x in table) / len(table) for m in mean(table)]


def rank(q, low):
    """The q-quantile as the value of some row; `low` for an empty table."""
    return lambda table: [sorted(table)[math.ceil(q * len(table)) - 1 if q else 0] if table else low]


def moments(d, *, parts=False):
    squares = [lambda x, i=i, j=j: x[i] * x[j] for i in range(d) for j in range(d)]
    return sums(lambda x: 1, *(lambda x, i=i: x[i] for i in range(d)), *squares) if parts else sums(*squares)


# Tight: what is claimed is what brute force finds


def cases():
    s = sensitivity
    one_hot, subsets = [(1, 0, 0), (0, 1, 0), (0, 0, 1)], list(product((0, 1), repeat=3))
    for relation in Neighbours:
        under = {"neighbours": relation}
        yield "count", s.count(**under), sums(lambda x: x), [0, 1], 3, relation
        yield "counts", s.counts(3, **under), columns(3), subsets, 2, relation
        yield "histogram", s.histogram(**under), columns(3), one_hot, 3, relation
        yield "size", s.size(**under), sums(lambda x: 1), [0, 1], 3, relation
        for bounds in [(-1, 3), (-3, 1), (2, 5), (-5, -2)]:
            rows, low = grid(*bounds), bounds[0]
            yield f"total {bounds}", s.total(bounds, **under), sums(lambda x: x), rows, 2, relation
            for name, q in {"minimum": 0, "median": HALF, "maximum": 1, "quantile": QUARTER}.items():
                claim = getattr(s, name)(bounds, **under)
                yield f"{name} {bounds}", claim, rank(q, low), rows, 3, relation
        for bounds in [(0, 1), (0, HALF), (1, 4), (-2, 2), (0, Fraction(9, 2)), (-1, Fraction(29, 4))]:
            rows = grid(*bounds, Fraction(1, 8))
            claim = s.mean_parts(bounds, **under)
            yield f"mean_parts {bounds}", claim, centred(bounds, 1, 0), rows, 1, relation
            claim = s.variance_parts(bounds, **under)
            if bounds != (-2, 2):  # its l2 under replace is irrational
                yield f"variance_parts {bounds}", claim, centred(bounds, 0, 1, 2), rows, 1, relation
            r = bounds[1] - bounds[0]
            claim, line = s.second_moments(1, r, **under), [(x,) for x in grid(-r, r, QUARTER)]
            yield f"second_moments 1 {r}", claim, moments(1), line, 1, relation
        claim = s.covariance_parts(1, HALF, **under)
        yield "covariance_parts 1", claim, moments(1, parts=True), ball(1, HALF), 1, relation
    for r in (HALF, 1, 3):
        yield f"second_moments 4 {r}", s.second_moments(4, r), moments(4), ball(4, r), 1, AR
        yield f"covariance_parts 4 {r}", s.covariance_parts(4, r), moments(4, parts=True), ball(4, r), 1, AR
    for n in (1, 2, 3, 4):
        under, rows = {"neighbours": REPLACE}, grid(-1, 2)
        shares = sums(*(lambda x, i=i, n=n: Fraction(x[i], n) for i in range(3)))
        yield f"normalised {n}", s.normalised(3, n, **under), shares, subsets, min(n, 2), REPLACE
        yield f"mean {n}", s.mean((-1, 2), n, **under), mean, rows, n, REPLACE
        yield f"variance {n}", s.variance((-1, 2), n, **under), variance, rows, n, REPLACE


@pytest.mark.parametrize("bounds", [(-5, 2), (2, 5), (-5, -2), (0, 5)])
def test_one_row_moves_a_sum_by_its_farther_bound(bounds):
    assert sensitivity.total(bounds).l1 == 5


@pytest.mark.parametrize(
    ("claim", "f", "rows", "n", "relation"),
    [pytest.param(*case, id=f"{name}-{case[-1]}") for name, *case in cases()],
)
def test_claim_is_the_largest_move(claim, f, rows, n, relation):
    assert norms(claim) == brute(f, rows, n, relation)
    assert claim.neighbours is relation


# Upper bounds and irrational maxima


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("parts", [False, True])
@pytest.mark.parametrize("r", [HALF, 1])
def test_matrices_under_replace(parts, r):
    claim = (sensitivity.covariance_parts if parts else sensitivity.second_moments)(4, r, neighbours=REPLACE)
    answers = {x: moments(4, parts=parts)([x]) for x in ball(4, r)}
    first = [x for x in answers if list(x) == sorted(map(abs, x))]  # all others by symmetry
    pairs = product(first, answers)
    l1, *others = longest([[a - b for a, b in zip(answers[x], answers[y], strict=True)] for x, y in pairs])
    assert norms(claim)[1:] == tuple(others)
    assert l1 <= claim.l1 <= l1 * Fraction(3, 2)
    assert claim.l1**2 <= claim.l0 * claim.l2_squared * (1 + Fraction(1, 2**50))


@pytest.mark.parametrize("r", [HALF, 1, 3])
def test_linf_of_covariance_parts_under_replace(r):
    claim = sensitivity.covariance_parts(2, r, neighbours=REPLACE)
    assert norms(claim)[2:] == brute(moments(2, parts=True), ball(2, r), 1, REPLACE)[2:]


def test_l1_of_second_moments_under_replace():
    claim = sensitivity.second_moments(4, 3, neighbours=REPLACE)
    c, s = math.cos(math.pi / 8), math.sin(math.pi / 8)
    x, y = (3 / math.sqrt(2) * np.array(v) for v in ([c, c, s, s], [s, s, -c, -c]))
    assert float(claim.l1) == pytest.approx(abs(np.outer(x, x) - np.outer(y, y)).sum(), rel=1e-12)
    assert claim.l1**2 >= 2 * (4 * 9) ** 2


@pytest.mark.parametrize("d", [2, 3, 4, 5])
def test_l1_of_second_moments_is_a_spread(d):
    """The largest x.Sx - y.Sy is the spread of the eigenvalues of S, over symmetric matrices S of signs."""
    largest = max(np.ptp(np.linalg.eigvalsh(matrix)) for matrix in signs(d))
    bound = float(sensitivity.second_moments(d, 1, neighbours=REPLACE).l1)
    assert largest == pytest.approx(math.sqrt(2 * d * d - d % 2), rel=1e-12)
    assert (bound == pytest.approx(largest, rel=1e-12)) if d % 2 == 0 else (largest < bound < 1.03 * largest)


def signs(d):
    """All symmetric matrices of signs, up to flips of a coordinate, which change no spread."""
    inner = [(i, j) for i in range(1, d) for j in range(i, d)]
    for first, *values in product((-1, 1), repeat=len(inner) + 1):
        matrix = np.ones((d, d))
        matrix[0, 0] = first
        for (i, j), value in zip(inner, values, strict=True):
            matrix[i, j] = matrix[j, i] = value
        yield matrix


@pytest.mark.parametrize("width", ["2.9", "3.3", "3.4", 4, 10])
def test_l2_of_variance_parts_under_replace(width):
    claim = sensitivity.variance_parts((0, width), neighbours=REPLACE)
    u = np.linspace(0, float(width), 1_000_001)
    found = float((u**2 + (u * u[::-1]) ** 2).max())
    assert float(claim.l2_squared) == pytest.approx(found, rel=1e-9)
    assert claim.l2_squared >= Fraction(found) * (1 - Fraction(1, 10**14))


# Workloads

entries = st.one_of(
    st.integers(-3, 3),
    st.integers(-(2**70), 2**70),
    st.sampled_from([2**60, 2**60 + 1, -(2**60)]),  # equal as floats
    st.fractions(min_value=-2, max_value=2, max_denominator=7),
    st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True),
)
kinds = st.sampled_from([entries, st.integers(-2, 2)])
matrices = st.tuples(st.integers(1, 4), st.integers(1, 5), kinds).flatmap(
    lambda t: st.lists(st.lists(t[2], min_size=t[1], max_size=t[1]), min_size=t[0], max_size=t[0])
)


def by_columns(matrix, relation):
    cells = list(zip(*[[Fraction(v) for v in row] for row in matrix], strict=True))
    two = [[a - b for a, b in zip(x, y, strict=True)] for x, y in combinations(cells, 2)]
    return longest(two if relation is REPLACE else cells)


@pytest.mark.slow
@given(matrices, st.sampled_from(Neighbours))
def test_workload_is_the_longest_column_or_difference(matrix, relation):
    assert norms(sensitivity.workload(matrix, neighbours=relation)) == by_columns(matrix, relation)


@given(st.integers(0, 2**32), st.sampled_from(Neighbours), st.sampled_from([4, 2**31, 2**62]))
def test_workload_of_an_array(seed, relation, top):
    matrix = np.random.default_rng(seed).integers(-top, top, (6, 9))
    assert norms(sensitivity.workload(matrix, neighbours=relation)) == by_columns(matrix.tolist(), relation)


def test_near_ties_are_decided_exactly():
    near, far = 2**80, 2**80 + 1
    claim = sensitivity.workload([[near, far, near, 0], [near, near, near - 1, 0]], neighbours=REPLACE)
    assert norms(claim) == (near + far, near**2 + far**2, far, 2)
    one = 2**60  # added to it, 64 is lost in a float and 131 counts as 256
    assert sensitivity.workload([[one, one], [64, 131], [64, 0], [64, 0]]).l1 == one + 192


@pytest.mark.parametrize("relation", Neighbours)
def test_workload_on_tables(relation):
    matrix = [[1, 1, 0], [0, 2, -1], [HALF, 0, 3]]
    answers = sums(*(lambda cell, row=row: row[cell] for row in matrix))
    assert norms(sensitivity.workload(matrix, neighbours=relation)) == brute(answers, range(3), 2, relation)


@pytest.mark.parametrize("m", [1, 2, 7])
def test_known_workloads(m):
    prefix, ones = np.tril(np.ones((m, m), dtype=int)), np.ones((1, m))
    for relation, k in {AR: m, REPLACE: m - 1}.items():
        under = {"neighbours": relation}
        assert norms(sensitivity.workload(prefix, **under)) == (k, k, min(k, 1), k)
        assert norms(sensitivity.workload(ones, **under)) == norms(sensitivity.size(**under))
        if m > 1:
            assert sensitivity.workload(np.eye(m), **under) == sensitivity.histogram(**under)
    assert norms(sensitivity.workload([[0] * m])) == (0, 0, 0, 0)


def test_floats_in_a_workload_are_binary():
    for array in (np.array([[0.1]]), np.array([[0.1]], dtype=np.float32), [[0.1]], [[np.float64(0.1)]]):
        assert sensitivity.workload(array).l1 == Fraction(float(array[0][0]))
    ends = [np.int64(2**63 - 1), np.int64(-(2**63))]
    assert sensitivity.workload([ends], neighbours=REPLACE).l1 == 2**64 - 1


@pytest.mark.slow
def test_large_workloads():
    m = 1000
    prefix = np.tril(np.ones((m, m), dtype=int))
    assert norms(sensitivity.workload(prefix, neighbours=REPLACE)) == (m - 1, m - 1, 1, m - 1)
    wide = prefix * np.arange(2**61, 2**61 + m)[:, None]
    moved = range(2**61, 2**61 + m - 1)  # the first column less the last
    found = norms(sensitivity.workload(wide, neighbours=REPLACE))
    assert found == (sum(moved), sum(w * w for w in moved), moved[-1], m - 1)


# The value itself


def test_norms_and_scaling():
    s = Sensitivity("2.5", 4, 1.5, 3, neighbours=REPLACE)
    assert (s.norm(1), s.norm(2), s.norm(math.inf), s.norm("inf")) == (Fraction(5, 2), 2, 1 + HALF, 1 + HALF)
    assert s.times(3) == Sensitivity("7.5", 36, 4.5, 9, neighbours=REPLACE)
    assert s.scaled("-0.1") == Sensitivity("0.25", "0.04", "0.15", 3, neighbours=REPLACE)
    assert s.scaled(0) == sensitivity.size(neighbours=REPLACE)
    two = Sensitivity(2, 2, 1, 2, neighbours=AR)
    assert 2 < two.l2**2 < 2 * (1 + Fraction(1, 2**59))
    assert two != sensitivity.histogram(neighbours=REPLACE)  # the relation is part of it


@pytest.mark.parametrize("relation", Neighbours)
@pytest.mark.parametrize("k", [1, 2, 4])
def test_k_rows_move_a_sum_k_times(k, relation):
    people = list(combinations_with_replacement(grid(-1, 2), k))  # each with k rows
    claim = sensitivity.total((-1, 2), neighbours=relation).times(k)
    assert norms(claim)[:3] == brute(sums(sum), people, 1, relation)[:3]


def test_average_height():
    """Heights from 1 to 300: the mean moves by 299/n, which is about 25 for 12 people and no other number."""
    moves = {n: sensitivity.mean((1, 300), n, neighbours=REPLACE).l1 for n in range(1, 1000)}
    assert all(move == Fraction(299, n) for n, move in moves.items())
    assert [n for n, move in moves.items() if round(move) == 25] == [12]
    assert sensitivity.maximum((1, 300), neighbours=REPLACE).l1 == 299


# What is refused


@pytest.mark.parametrize(
    "bounds",
    [
        (1, 0), (1, 1), (math.nan, 1), (0, math.nan), (-math.inf, 0), (0, math.inf), (0, True), (False, 1),
        (0, "inf"), (0, "x"), (0, None), (0,), (0, 1, 2), "01", 1, None, {0, 1}, (Decimal("NaN"), 1),
    ],
)  # fmt: skip
def test_bad_bounds(bounds):
    with pytest.raises(InputError, match=r"^(bounds|low|high) must be .*\.$"):
        sensitivity.total(bounds)


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: sensitivity.mean((0, 1), 10), "mean_parts"),
        (lambda: sensitivity.variance((0, 1), 10), "variance_parts"),
        (lambda: sensitivity.normalised(2, 10), r"counts\(k\) and size"),
        (lambda: sensitivity.mean((0, 1), 0, neighbours=REPLACE), "n must be a whole number"),
        (lambda: sensitivity.mean((0, 1), 2.5, neighbours=REPLACE), "n must be a whole number"),
        (lambda: sensitivity.counts(0), "k must be a whole number"),
        (lambda: sensitivity.counts(True), "k must be a whole number"),
        (lambda: sensitivity.second_moments(0, 1), "d must be a whole number"),
        (lambda: sensitivity.second_moments(2, 0), "radius must be above 0"),
        (lambda: sensitivity.covariance_parts(2, math.inf), "radius must be a finite number"),
        (lambda: sensitivity.count(neighbours="replace"), "Neighbours.REPLACE"),
        (lambda: sensitivity.count().norm(3), "1, 2 or 'inf'"),
        (lambda: sensitivity.count().times(0), "k must be a whole number"),
        (lambda: sensitivity.count().scaled(math.nan), "c must be a finite number"),
        (lambda: Sensitivity(-1, 1, 1, 1, neighbours=AR), "0 <= linf"),
        (lambda: Sensitivity(1, 1, -1, 1, neighbours=AR), "0 <= linf"),
        (lambda: Sensitivity(1, 2, 1, 1, neighbours=AR), "linf <= l2 <= l1"),
        (lambda: Sensitivity(2, 1, 2, 1, neighbours=AR), "linf <= l2 <= l1"),
        (lambda: Sensitivity(1, 1, 1, 0, neighbours=AR), "l0 must be"),
        (lambda: Sensitivity(0, 0, 0, 1, neighbours=AR), "l0 must be"),
        (lambda: Sensitivity(1, 1, 1, -1, neighbours=AR), "l0 must be a whole number"),
    ],
)
def test_bad_input(call, hint):
    with pytest.raises(InputError, match=hint):
        call()


@pytest.mark.parametrize(
    ("matrix", "hint"),
    [
        ([], "one row for each query"), ([[]], "one row for each query"), ([1, 2], "one row for each query"),
        ([[1, 2], [3]], "one row for each query"), (np.ones((2, 2, 2)), "one row for each query"),
        (None, "one row for each query"), ("ab", "one row for each query"),
        (np.ones((0, 3)), "one row for each query"), ([np.ones(2), np.ones((2, 2))], "one row for each"),
        ([[1, math.nan]], "finite"), ([[math.inf]], "finite"), (np.array([[-np.inf, 1]]), "finite"),
        ([[True, 1]], "1 for true"), (np.eye(2, dtype=bool), "1 for true"), ([["1"]], "floats or Fractions"),
        (np.array([[1j]]), "floats or Fractions"), ([[None]], "floats or Fractions"),
    ],
)  # fmt: skip
def test_bad_workloads(matrix, hint):
    with pytest.raises(InputError, match=hint):
        sensitivity.workload(matrix)
