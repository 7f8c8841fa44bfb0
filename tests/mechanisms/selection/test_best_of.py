"""The best of K runs: laws by summing over K, the theorem by search over runs, K's samplers, ties, broken twins."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.goodness import ALPHA, p_value
from tests.tapes import Script, exp, misfits, walk

import noisette as nz
from noisette.audit.contract import checks_of
from noisette.audit.finding import THOROUGH
from noisette.errors import InputError
from noisette.mechanisms.selection.best_of import BestOf, geometric_runs, logarithmic_runs
from noisette.privacy import Neighbours, Pure

EXAMPLES = [BestOf(10, each="1/3"), BestOf(4, each=1, eta=0), BestOf("3/2", each=2), BestOf(30, each="1/5", eta=0)]


def count_law(m, most=2000):
    """P(K = k) for k = 1 .. most, from the definition."""
    g, k = float(m.gamma), np.arange(1, most + 1)
    return g * (1 - g) ** (k - 1.0) if m.eta else (1 - g) ** k / (k * -math.log(g))


def best_of(table, counts):
    """The law of the best of K runs if P(K = k) = counts[k-1], summed over k; scores without ties."""
    order = sorted(table, key=lambda y: y[0])
    upto = np.cumsum([float(table[y]) for y in order])
    k = np.arange(1, len(counts) + 1)
    below = [float(np.sum(counts * t**k)) for t in np.minimum(upto, 1.0)]
    return dict(zip(order, np.diff(below, prepend=0.0), strict=True))


def runs(weights):
    """A run with that many results of rising score."""
    total = sum(weights)
    return {(i, "result"): Fraction(w, total) for i, w in enumerate(weights)}


def loss(P, Q):
    return max(abs(math.log(P[y] / Q[y])) for y in P)


# The law


@pytest.mark.parametrize("m", EXAMPLES, ids=repr)
@pytest.mark.parametrize("weights", [[1], [1, 1], [5, 1, 90], [1, 2, 3, 4]], ids=str)
def test_the_law_is_the_sum_over_all_numbers_of_runs(m, weights):
    table = runs(weights)
    assert m.outcomes(table) == pytest.approx(best_of(table, count_law(m)), abs=1e-12)
    assert count_law(m, 10**4) @ np.arange(1, 10**4 + 1) == pytest.approx(m.runs)


@pytest.mark.slow
def test_ties_do_not_matter():
    """Two results share the highest score: the earliest, the latest or any of the tied runs, by enumeration."""
    table, m = {(0, "a"): Fraction(1, 2), (1, "b"): Fraction(1, 3), (1, "c"): Fraction(1, 6)}, BestOf(2, each=1)
    earliest, latest, even = ({y: Fraction(0) for y in table} for _ in range(3))
    for k in range(1, 8):
        for results in itertools.product(table, repeat=k):
            chance = Fraction(1, 2**k) * math.prod((table[y] for y in results), start=Fraction(1))
            tied = [y for y in results if y[0] == max(results)[0]]
            earliest[tied[0]] += chance
            latest[tied[-1]] += chance
            for y in tied:
                even[y] += chance / len(tied)
    assert earliest == latest == even
    law = m.outcomes(table)
    assert all(0 <= law[y] - float(earliest[y]) < 2**-7 for y in table)
    draws = [m(table) for _ in range(4000)]
    assert p_value([draws.count(y) for y in table], [law[y] for y in table]) > ALPHA


# The theorem


def extremes(count, e):
    """Pairs of runs with the widest ratios: each result is e^e likelier under one of both."""
    up = exp(e)
    for more in itertools.product((False, True), repeat=count):
        if len(set(more)) == 2:
            yield more, up


def pair(weights, more, up):
    """Q and Q' with Q'/Q = e^e where `more`, e^-e elsewhere, and masses that make both sum to one."""
    gain = sum(w for w, m in zip(weights, more, strict=True) if m)
    rest = sum(weights) - gain
    share = 1 / (1 + up)  # the mass that Q gives to what is likelier under Q'
    Q = [share * w / gain if m else (1 - share) * w / rest for w, m in zip(weights, more, strict=True)]
    R = [q * up if m else q / up for q, m in zip(Q, more, strict=True)]
    assert sum(Q) == sum(R) == 1
    return tuple({(i, 0): q for i, q in enumerate(law)} for law in (Q, R))


@pytest.mark.parametrize("m", EXAMPLES, ids=repr)
def test_no_pair_of_small_runs_loses_more_and_some_come_near(m):
    worst, stated = 0.0, float(m.guarantee().epsilon)
    for weights in itertools.product((1, 30, 900), repeat=3):
        for more, up in extremes(3, m.each):
            Q, R = pair([Fraction(w) for w in weights], more, up)
            worst = max(worst, loss(best_of(Q, count_law(m)), best_of(R, count_law(m))))
    assert 0.99 * stated < worst <= stated * (1 + 1e-9)
    assert stated <= (2 + m.eta) * float(m.each)


@settings(max_examples=30)
@given(st.lists(st.integers(1, 1000), min_size=2, max_size=5), st.data())
def test_no_pair_of_any_runs_loses_more(weights, data):
    m = data.draw(st.sampled_from(EXAMPLES))
    wobble = data.draw(st.lists(st.floats(-0.5, 0.5), min_size=len(weights), max_size=len(weights)))
    Q = np.array(weights) / sum(weights)
    R = Q * np.exp(np.array(wobble) * float(m.each))
    R /= R.sum()
    e = float(np.max(np.abs(np.log(R / Q))))  # at most `each`
    tables = [{(i, 0): p for i, p in enumerate(law)} for law in (Q, R)]
    stated = replace(m, each=max(e, 1e-9)).guarantee().epsilon
    assert loss(*(best_of(table, count_law(m)) for table in tables)) <= float(stated) * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("eta", [0, 1])
def test_many_runs_reach_the_theorem_of_the_papers(eta):
    m = BestOf(10**6, each="1/2", eta=eta)
    assert float(m.guarantee().epsilon) == pytest.approx((2 + eta) / 2, rel=1e-4)
    assert loss(*(m.outcomes(x) for x in m.pairs()[0][:2])) > 0.998 * (2 + eta) / 2
    once = BestOf("1.000001", each="1/2", eta=eta)
    assert float(once.guarantee().epsilon) == pytest.approx(1 / 2, rel=1e-4)


@pytest.mark.parametrize("m", EXAMPLES, ids=repr)
def test_epsilon_is_rounded_up(m):
    with mpmath.workdps(50):
        e, g = (mpmath.mpf(v.numerator) / v.denominator for v in (m.each, m.gamma))
        true = e + (1 + m.eta) * mpmath.log((mpmath.exp(e) + g) / (1 + g * mpmath.exp(e)))
        stated = m.guarantee().epsilon
        assert 0 <= mpmath.mpf(stated.numerator) / stated.denominator - true < mpmath.mpf(2) ** -80


# Broken twins


@pytest.mark.parametrize("k", [2, 5, 10])
def test_a_fixed_number_of_runs_is_convicted(k):
    m = BestOf(k, each="1/3")
    fixed = np.zeros(k)
    fixed[-1] = 1.0
    low = exp(Fraction(1, 3))
    Q, R = pair([Fraction(1), Fraction(1)], (False, True), low)
    assert loss(best_of(Q, fixed), best_of(R, fixed)) == pytest.approx(k / 3)  # of all runs the worst result
    assert k / 3 > float(m.guarantee().epsilon)


def test_the_number_of_runs_must_not_be_released():
    """(K, result) is worse than any guarantee: given K = k it is the best of k."""
    m, counts = BestOf(10, each="1/3"), count_law(BestOf(10, each="1/3"))
    Q, R = pair([Fraction(1), Fraction(1)], (False, True), exp(Fraction(1, 3)))
    for k in (1, 3, 30):
        alone = np.where(np.arange(1, 2001) == k, counts, 0.0)
        shown = [best_of(table, alone)[(0, 0)] for table in (Q, R)]
        assert math.log(shown[0] / shown[1]) == pytest.approx(k / 3)
    assert 3 * float(m.guarantee().epsilon) < 30 / 3


@pytest.mark.parametrize("most", [12, 15])
def test_a_number_of_runs_that_is_cut_off_has_another_law(most):
    """Stopping after `most` runs is not what the theorem is about, and loses more than it states."""
    m = BestOf(10**6, each="1/3")
    counts = count_law(m, most)
    counts[-1] += 1 - counts.sum()
    Q, R = pair([Fraction(1), Fraction(1)], (False, True), exp(Fraction(1, 3)))
    assert loss(best_of(Q, counts), best_of(R, counts)) > 3 * float(m.guarantee().epsilon)


def test_a_poisson_number_of_runs_has_no_pure_guarantee():
    k = np.arange(1, 400)
    counts = np.array([float(mpmath.exp(-100) * mpmath.mpf(100) ** int(i) / mpmath.factorial(int(i))) for i in k])
    Q, R = pair([Fraction(1), Fraction(1)], (False, True), exp(Fraction(1, 3)))
    assert loss(best_of(Q, counts), best_of(R, counts)) > 10 * (1 / 3)


# How many runs


@pytest.mark.parametrize("gamma", [Fraction(1, 2), Fraction(2, 3), Fraction(3, 7), Fraction(1)])
def test_geometric_numbers_of_runs_are_exact(gamma):
    walked = walk(geometric_runs, gamma, least=Fraction(1, 10**4))
    assert misfits(walked, lambda k: gamma * (1 - gamma) ** (k - 1)) == {}


@pytest.mark.parametrize("gamma", [Fraction(1, 2), Fraction(9, 10), Fraction(1, 1000)])
def test_logarithmic_numbers_of_runs_turn_where_the_law_says(gamma):
    """Uniform numbers of 64 bits just below and above P(K <= k) give k and k + 1, and 64 bits more decide between."""
    with mpmath.workdps(80):
        g = mpmath.mpf(gamma.numerator) / gamma.denominator
        upto = mpmath.mpf(0)
        for k in range(1, 12):
            upto += (1 - g) ** k / (k * -mpmath.log(g))
            word, more = (int(mpmath.floor(mpmath.ldexp(upto, bits))) for bits in (64, 128))
            rest = more - (word << 64)
            for script, runs_drawn in [
                ((word - 1,), k), ((word + 1,), k + 1), ((word, rest - 1), k), ((word, rest + 1), k + 1),
            ]:  # fmt: skip
                assert logarithmic_runs(gamma, Script(*script)) == runs_drawn


@pytest.mark.parametrize("m", EXAMPLES, ids=repr)
def test_numbers_of_runs_follow_their_law(m):
    drawn = [(geometric_runs if m.eta else logarithmic_runs)(m.gamma) for _ in range(4000)]
    law = count_law(m, 60)
    assert p_value([*(drawn.count(k) for k in range(1, 61)), sum(k > 60 for k in drawn)], [*law, 1 - law.sum()]) > ALPHA


def test_the_largest_uniform_numbers_are_refined():
    assert logarithmic_runs(Fraction(1, 2), Script(2**64 - 1, 2**64 - 1, 0)) > 60
    assert logarithmic_runs(Fraction(1, 2), Script(0)) == 1


# The mechanism


@pytest.mark.parametrize("check", list(checks_of(EXAMPLES[1])))
def test_the_contract_is_kept_with_a_logarithmic_number(check):
    """Which is not among the module's examples: a scale that is wrong by a fifth hardly shows."""
    assert checks_of(EXAMPLES[1])[check](EXAMPLES[1], THOROUGH).passed


def test_a_run_is_any_function_of_the_coins():
    """The better of noisy maxima: each run chooses by a private mechanism of its own."""
    m, choose = BestOf.calibrated(Pure(2), scale=5), nz.PermuteAndFlip(4, candidates=3)
    calls = []

    def run(rng):
        calls.append(1)
        y = choose([0, 3, 9], rng)
        return y, f"candidate {y}"

    results = [m(run) for _ in range(300)]
    law = m.outcomes(
        {(i, f"candidate {i}"): Fraction(p).limit_denominator(10**6) for i, p in ((0, 0.2), (1, 0.3), (2, 0.5))}
    )
    assert set(results) <= set(law)
    assert 900 < len(calls) < 2400  # 300 runs of 5 on average, sd 77


@pytest.mark.slow
def test_shares_of_better_runs_are_as_stated():
    for m in EXAMPLES:
        even = runs([1] * 80)
        shares = [(m.error(y, even), p) for y, p in m.outcomes(even).items()]
        for level in (0.5, 0.9, 0.99):
            t = m.interval(level)
            assert math.fsum(p for share, p in shares if share <= t - 2 / 80) < level
            assert math.fsum(p for share, p in shares if share <= t) >= level - 1e-12


@pytest.mark.slow
@settings(max_examples=25)
@given(
    st.fractions("1/50", 30, max_denominator=50),
    st.fractions("21/20", 1000, max_denominator=20),
    st.integers(0, 1),
    st.integers(1, 3),
)
def test_what_is_asked_for_is_kept_and_nearly_used_up(epsilon, scale, eta, people):
    m = BestOf.calibrated(Pure(epsilon), people, scale=scale, eta=eta)
    assert m.guarantee(people) <= Pure(epsilon)
    more = replace(m, each=m.each * Fraction(1000001, 1000000))
    assert not more.guarantee(people) <= Pure(epsilon)


def test_huge_groups_have_a_guarantee():
    m = BestOf(10, each=1)
    assert m.guarantee(10**5).epsilon == pytest.approx(10**5 + 2 * math.log(10))
    assert m.guarantee(701).epsilon >= m.guarantee(700).epsilon
    assert m.guarantee(0) == Pure(0)


def test_relations_are_carried():
    for relation in Neighbours:
        assert EXAMPLES[0].guarantee(nz.sensitivity.count(neighbours=relation)).neighbours is relation


BAD = [
    None, 3, "run", [], {}, {(0, 0): 0.5}, {0: 1}, {(0, 0): True}, {(math.nan, 0): 1}, {("a", 0): 1}, {(0, 0): None},
    {(0, 0): 2, (1, 0): -1}, [lambda rng: (0, 0)], int, {(0, 0, 0): 1}, {(True, 0): 1},
]  # fmt: skip


@pytest.mark.parametrize("run", BAD, ids=range(len(BAD)))
def test_what_is_no_run_is_refused_before_any_coin_is_drawn(run):
    with pytest.raises(InputError) as error:
        BestOf(3, each=1)(run, Script())
    assert str(error.value).endswith(".")
    assert ". " not in str(error.value)


@pytest.mark.parametrize("result", [None, 3, (1,), (math.nan, 0), ("1", 0), (True, 0), [1, 2], (1, 2, 3)], ids=str)
def test_results_without_a_score_are_refused(result):
    with pytest.raises(InputError, match="score"):
        BestOf(3, each=1)(lambda rng: result)


@pytest.mark.parametrize(
    "options", [{"scale": 0}, {"scale": "1/2"}, {"scale": 10**7}, {"each": 0}, {"each": 51}, {"eta": 2}, {"eta": True},
                {"eta": 0, "scale": 1}, {"eta": None}],
)  # fmt: skip
def test_bad_parameters_are_refused(options):
    with pytest.raises(InputError):
        BestOf(**{"scale": 3, "each": 1, **options})


@pytest.mark.parametrize("level", [0, 1, math.nan])
def test_bad_levels_are_refused(level):
    with pytest.raises(InputError):
        BestOf(3, each=1).interval(level)
