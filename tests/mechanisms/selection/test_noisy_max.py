"""Report noisy max: its law by enumeration of noise, its theorem for all small scores, the gap, broken twins."""

import itertools
import math
from collections import Counter

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.errata.quadrature import Z, integral, winner
from tests.goodness import ALPHA, p_value
from tests.mechanisms.selection.test_exponential import BAD, moves
from tests.tapes import Script
from tests.timing import times_as_long

import noisette as nz
from noisette.audit.divergence import largest_loss, laws_of
from noisette.errors import InputError, PrivacyError
from noisette.laws import DiscreteLaplace
from noisette.mechanisms import calibrate
from noisette.mechanisms.selection.exponential import Exponential
from noisette.mechanisms.selection.noisy_max import NoisyMax, NoisyMaxGap
from noisette.mechanisms.selection.permute_and_flip import PermuteAndFlip

ADD_REMOVE, REPLACE = nz.Neighbours
BOTH = pytest.mark.parametrize("noise", ["geometric", "laplace"])


@BOTH
def test_gaps_are_drawn_by_their_law_where_many_tie(noise):
    m, scores = NoisyMaxGap("1/2", candidates=4, noise=noise), [0, 0, 0, -1]
    law = m.outcomes(scores)
    counts = Counter(m(scores) for _ in range(2000))
    assert p_value([counts[each] for each in law], list(law.values())) > ALPHA  # fails with p < 1e-12


def chances(noise, scale, reach):
    """The noise by its definition: whole numbers with weights e^(-|z|/scale), from -reach or 0 on."""
    values = range(-reach if noise == "laplace" else 0, reach + 1)
    weights = [math.exp(-abs(z) / scale) for z in values]
    return dict(zip(values, np.array(weights) / math.fsum(weights), strict=True))


def all_noise(scores, noise, scale, reach):
    """Every outcome of all noise: the noisy scores with their probability."""
    table = chances(noise, scale, reach)
    for z in itertools.product(table, repeat=len(scores)):
        yield [q + v for q, v in zip(scores, z, strict=True)], math.prod(table[v] for v in z)


def by_noise(scores, noise, scale, reach, release):
    """The law of what `release` (noisy scores -> outcomes with their shares) makes of all noise."""
    law = Counter()
    for noisy, chance in all_noise(scores, noise, scale, reach):
        for outcome, share in release(noisy).items():
            law[outcome] += chance * share
    return law


def index(noisy):
    best = [i for i, v in enumerate(noisy) if v == max(noisy)]
    return dict.fromkeys(best, 1 / len(best))


def index_and_gap(noisy):
    """All orders of fractions, each as likely, break ties; the gap loses one if the runner-up's fraction is larger."""
    law = Counter()
    orders = list(itertools.permutations(range(len(noisy))))
    for fractions in orders:
        first, second = sorted(range(len(noisy)), key=lambda i: (noisy[i], fractions[i]), reverse=True)[:2]
        gap = noisy[first] - noisy[second] - (fractions[first] < fractions[second])
        law[first, gap] += 1 / len(orders)
    return law


def worst(before, after):
    """The largest |ln P/Q| over outcomes that both laws list and at least one knows."""
    shared = [(before[y], after[y]) for y in before.keys() & after.keys() if before[y] > 0 or after[y] > 0]
    return max(abs(math.log(p / q)) if p > 0 < q else math.inf for p, q in shared)


# The index


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("scores", [[0, 1, 0], [2, 0, 2], [-3, 0, 1]], ids=repr)
def test_the_law_is_that_of_all_noise(scores):
    m = NoisyMax("2/3", candidates=3)
    law = by_noise(scores, "laplace", 2 / 3, 20, index)
    assert m.pmf(range(3), scores) == pytest.approx([law[i] for i in range(3)], abs=1e-11)


@pytest.mark.slow
def test_the_law_of_fine_scores_is_that_of_continuous_noise():
    scores = [0, 10, 25, 22]  # tenths, of errata E6 and E20
    m = NoisyMax(2000, candidates=4)
    continuous = [winner(scores, i, 20) for i in range(4)]
    assert m.pmf(range(4), [100 * q for q in scores]) == pytest.approx(continuous, abs=2e-7)
    assert continuous == pytest.approx([0.0972, 0.1700, 0.3966, 0.3362], abs=5e-5)


@pytest.mark.slow
@pytest.mark.parametrize("monotone", [False, True])
def test_every_move_of_small_scores_keeps_epsilon_and_some_nearly_reach_it(monotone):
    m = NoisyMax(1, candidates=4, monotone=monotone)
    stated, reached = float(m.guarantee(1).epsilon), 0.0
    for q in itertools.combinations_with_replacement(range(3), 4):
        law = m.pmf(range(4), q)
        for s in moves(4, 1, monotone):
            reached = max(reached, largest_loss(law, m.pmf(range(4), np.add(q, s))))
    assert 0.8 * stated < reached <= stated * (1 + 1e-12)
    x, y, _ = m.pairs()[0]
    assert largest_loss(*laws_of(m, x, y)) == pytest.approx(stated, rel=1e-9)
    assert stated == (1 if monotone else 2)


def test_e20_noise_of_one_over_epsilon_is_enough_for_monotone_scores_only():
    m = calibrate(NoisyMax, 1, candidates=3, monotone=True)
    assert m.scale == 1
    assert m.guarantee(nz.sensitivity.histogram()) == nz.Pure(1, neighbours=ADD_REMOVE)
    assert m.guarantee(nz.sensitivity.histogram(neighbours=REPLACE)) == nz.Pure(2, neighbours=REPLACE)
    assert largest_loss(*laws_of(m, [-40, 0, 0], [-39, 0, 0])) == pytest.approx(1, abs=1e-12)
    assert largest_loss(*laws_of(m, [-40, 0, 0], [-39, -1, -1])) == pytest.approx(2, abs=1e-12)
    assert calibrate(NoisyMax, nz.Pure(1, neighbours=REPLACE), candidates=3, monotone=True).scale == 2


def test_two_candidates_never_quite_reach_epsilon():
    m = NoisyMax(1, candidates=2)
    losses = [largest_loss(*laws_of(m, [-b, 0], [1 - b, -1])) for b in (5, 50, 300)]
    assert losses == sorted(losses)
    assert 1.9 < losses[-1] < 2


def test_fractions_of_a_step_cost_no_more_than_stated():
    m = NoisyMax(1, candidates=3)
    assert m.guarantee("3/2").epsilon == 3  # while whole scores within 3/2 move by 1 at most, which costs 2


def test_gumbel_noise_is_the_exponential_mechanism():
    scores, scale = [0, 1, 3, 2], 2.0

    def cdf(z):
        return np.exp(-np.exp(-np.clip(z / scale, -50, None)))

    def pdf(z):
        return np.exp(-np.clip(z / scale, -50, None)) * cdf(z) / scale

    law = [
        integral(pdf(Z - q) * np.prod([cdf(Z - p) for p in np.delete(scores, i)], axis=0)) for i, q in enumerate(scores)
    ]
    assert law == pytest.approx(Exponential(2, candidates=4).pmf(range(4), scores), abs=1e-9)
    assert np.abs(law - NoisyMax(2, candidates=4).pmf(range(4), scores)).max() > 0.01  # E6: they are not the same


@pytest.mark.parametrize("scores", [[0, 1, 0], [2, 0, 2], [-3, 0, 1]], ids=repr)
def test_geometric_noise_with_even_ties_is_permute_and_flip(scores):
    law = by_noise(scores, "geometric", 3 / 4, 26, index)
    assert [law[i] for i in range(3)] == pytest.approx(
        PermuteAndFlip("3/4", candidates=3).pmf(range(3), scores), abs=1e-12
    )


def test_permute_and_flip_is_never_worse():
    flip, laplace = PermuteAndFlip(2, candidates=4), NoisyMax(2, candidates=4)
    for losses in itertools.product(range(0, 12, 3), repeat=3):
        loss = np.array([0, *losses])
        assert (flip.pmf(range(4), -loss) * loss).sum() <= (laplace.pmf(range(4), -loss) * loss).sum() + 1e-12


AWKWARD = [
    (NoisyMax("7/3", candidates=4), [0, 3, 5, 5]),
    (NoisyMax("1/5", candidates=3), [10**6, 10**6 + 1, 10**6]),
    (NoisyMax(9, candidates=12), list(range(12))),
    (NoisyMax(3, candidates=3), [2**62 - 1, 2**62 - 3, 2**62 - 3]),
]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("m", "scores"), AWKWARD, ids=["ties", "narrow", "many", "large"])
def test_draws_follow_the_law(m, scores):
    draws = [m(scores) for _ in range(4000)]
    assert all(type(y) is int for y in draws)
    assert p_value(np.bincount(draws, minlength=m.candidates), m.pmf(range(m.candidates), scores)) > ALPHA


@pytest.mark.slow
def test_other_noise_is_told_apart():
    m, scores = NoisyMax(2, candidates=4), [0, 0, 0, 4]
    counts = np.bincount([m(scores) for _ in range(10_000)], minlength=4)
    for other in (Exponential("5/3", candidates=4), PermuteAndFlip(2, candidates=4), NoisyMax("3/2", candidates=4)):
        assert p_value(counts, other.pmf(range(4), scores)) < ALPHA


@pytest.mark.parametrize("make", [NoisyMax, NoisyMaxGap])
def test_sums_beyond_64_bits_do_not_wrap(make, monkeypatch):
    for law in (DiscreteLaplace, type(NoisyMaxGap(1, candidates=2)._noise)):
        monkeypatch.setattr(law, "sample", lambda *_: np.array([0, 2**63 - 1]))
    y = make(1, candidates=2)([2**62 - 1, 2**62 - 1])
    assert (y if make is NoisyMax else y[0]) == 1
    assert make is NoisyMax or y[1] in (2**63 - 1, 2**63 - 2)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("m", [NoisyMax(1, candidates=3), NoisyMax("5/2", candidates=4)])
def test_losses_are_as_stated(m):
    k, t, least, squares = m.candidates, m.interval(0.9), 1.0, 0.0
    for losses in itertools.combinations_with_replacement(range(0, 16), k - 1):
        loss = np.array([0, *losses])
        law = m.pmf(range(k), -loss)
        least = min(least, law[loss <= t].sum())
        squares = max(squares, (law * loss**2).sum())
    assert least >= 0.9 - 1e-12
    assert squares == pytest.approx(m.variance(), rel=1e-12)  # no scores are worse than equal losses
    assert m.pmf(0, [0] + [-int(t)] * (k - 1)) < 0.9  # a smaller t would not do


@pytest.mark.parametrize("k", [2, 3, 40, 10**6])
@pytest.mark.parametrize("loss", [0, 1, 30])
def test_chances_to_stray_are_those_of_the_definition(k, loss):
    """P(best) = sum over S of P(z = S) times the mean of (P(others < S) + u P(others = S))^(k-1), to 40 digits."""
    m = NoisyMax(2, candidates=k)
    with mpmath.workdps(40):
        a = mpmath.exp(-mpmath.mpf(1) / 2)

        def pmf(z):
            return (1 - a) / (1 + a) * a ** abs(z)

        def cdf(z):
            return a ** (-z) / (1 + a) if z < 0 else 1 - a ** (z + 1) / (1 + a)

        def mean_power(z):
            return (cdf(z) ** k - cdf(z - 1) ** k) / (k * pmf(z))

        stray = 1 - mpmath.fsum(pmf(s) * mean_power(s + loss) for s in range(-140, 140))
        assert m._strays(loss) == pytest.approx(float(stray), rel=1e-10)


@pytest.mark.slow
def test_coarser_steps_are_careful():
    fine, coarse = NoisyMax(255, candidates=5), NoisyMax(2550, candidates=5)
    assert 10 * fine.interval(0.9) <= coarse.interval(0.9) + 10 <= 10.3 * fine.interval(0.9)
    assert coarse.variance() == pytest.approx(100 * fine.variance(), rel=1e-4)


# The gap


@pytest.mark.slow_after(1)
@BOTH
@pytest.mark.parametrize("scores", [[0, 0, 0], [0, 2, 1], [3, 0, 0]], ids=repr)
def test_the_law_of_the_gap_is_that_of_all_noise_with_fractions(noise, scores):
    m = NoisyMaxGap("1/2", candidates=3, noise=noise)
    law, listed = by_noise(scores, noise, 1 / 2, 15, index_and_gap), m.outcomes(scores)
    assert math.fsum(listed.values()) == pytest.approx(1, abs=1e-12)
    assert all(listed.get(y, 0) == pytest.approx(p, abs=1e-11) for y, p in law.items())
    assert min(gap for _, gap in law) == 0


@BOTH
def test_the_index_of_the_gap_is_the_index(noise):
    scores, gap = [0, 1, 3, 2], NoisyMaxGap(2, candidates=4, noise=noise).outcomes([0, 1, 3, 2])
    alone = {"laplace": NoisyMax, "geometric": PermuteAndFlip}[noise](2, candidates=4)
    sums = [math.fsum(p for (i, _), p in gap.items() if i == j) for j in range(4)]
    assert sums == pytest.approx(alone.pmf(range(4), scores), rel=1e-11)
    lowered = [0, 1, 3 - 2, 2]  # a gap of at least 2 is a win even with 2 less
    assert math.fsum(p for (i, g), p in gap.items() if i == 2 and g >= 2) == pytest.approx(float(alone.pmf(2, lowered)))


@BOTH
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("scale", ["1/3", 1])
def test_the_gap_is_free_for_every_move_of_small_scores(noise, monotone, scale):
    m = NoisyMaxGap(scale, candidates=3, monotone=monotone, noise=noise)
    laws, reached = {}, 0.0
    for q in itertools.combinations_with_replacement(range(3), 3):
        for s in moves(3, 1, monotone):
            for key in (q, tuple(np.add(q, s).tolist())):
                laws[key] = laws.get(key) or m.outcomes(key)
            reached = max(reached, worst(laws[q], laws[tuple(np.add(q, s).tolist())]))
    stated = float(m.guarantee(1).epsilon)
    assert stated == (1 if monotone else 2) / float(m.scale)
    assert (1 - 1e-9 if noise == "geometric" else 0.99) * stated <= reached <= stated * (1 + 1e-9)


@BOTH
def test_the_gap_is_free_with_many_ties(noise):
    """Of candidates that tie, some move: the chance of a tie changes, what the gap tells does not."""
    m = NoisyMaxGap("1/4", candidates=7, monotone=True, noise=noise)
    for level, movers in itertools.product((-1, 0, 1), range(1, 6)):
        q = [0, 0] + [level] * 5
        for first in (0, 1):
            moved = [first, 0] + [level + (i < movers) for i in range(5)]
            assert worst(m.outcomes(q), m.outcomes(moved)) <= 4 * (1 + 1e-9)


@pytest.mark.parametrize(("noise", "least"), [("laplace", 1.99), ("geometric", 1000)])
def test_the_noisy_maximum_must_not_be_released(noise, least):
    """A broken twin that the same enumeration convicts: index and largest noisy score."""

    def with_value(noisy):
        return {(i, max(noisy)): share for i, share in index(noisy).items()}

    P, Q = (by_noise(q, noise, 1, 30, with_value) for q in ([0, 0], [1, 1]))
    middle = [y for y in P if abs(y[1]) <= 10]  # where no noise is cut off
    assert max(abs(math.log(P[y] / Q[y])) if Q[y] else math.inf for y in middle) > least
    m = NoisyMaxGap(1, candidates=2, monotone=True, noise=noise)
    assert m.guarantee(1).epsilon == 1
    assert worst(m.outcomes([0, 0]), m.outcomes([1, 1])) < 1e-12


@BOTH
def test_half_the_noise_is_convicted(noise):
    m = NoisyMaxGap(1, candidates=3, noise=noise)
    x, y, d = m.pairs()[0]
    for factor, honest in ((1, True), (0.8, False)):
        law = NoisyMaxGap(factor, candidates=3, noise=noise).outcomes
        assert (worst(law(x), law(y)) <= float(m.guarantee(d).epsilon) * (1 + 1e-9)) is honest


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize(
    ("scale", "scores"), [("1/4", [0, 0, 0, 0, 0]), (2, [0, 3, 5, 5, 2]), ("3/2", [9, 4, 4, 0, 1])]
)
def test_gaps_that_are_drawn_follow_the_law(noise, scale, scores):
    m = NoisyMaxGap(scale, candidates=5, noise=noise)
    drawn, law = Counter(m(scores) for _ in range(5000)), m.outcomes(scores)
    assert all(type(v) is int for y in drawn for v in y)
    assert drawn.keys() <= law.keys()
    assert p_value([drawn[y] for y in law], list(law.values())) > ALPHA


@pytest.mark.slow
@BOTH
def test_a_gap_that_is_never_reduced_is_told_apart(noise):
    """A broken sampler: the difference of whole parts, without the coin."""
    m, scores = NoisyMaxGap(1, candidates=3, noise=noise), [0, 1, 1]
    law, drawn = m.outcomes(scores), Counter()
    for _ in range(5000):
        noisy = np.array(scores) + np.asarray(m._noise.sample(3, nz.exact.random.SYSTEM))
        best = np.flatnonzero(noisy == noisy.max())
        drawn[int(np.random.default_rng().choice(best)), int(noisy.max() - np.sort(noisy)[-2])] += 1
    assert p_value([drawn[y] for y in law], list(law.values())) < ALPHA


@pytest.mark.slow_after(1)
@BOTH
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_the_gap_is_as_near_to_the_truth_as_stated(noise, level):
    m = NoisyMaxGap(1, candidates=3, noise=noise)
    t = m.interval(level)
    for scores in itertools.product((0, 1, 5), repeat=3):
        law = m.outcomes(scores)
        assert math.fsum(p for y, p in law.items() if m.error(y, scores) <= t) >= level
        assert all(max(scores) - scores[i] <= m.error((i, g), scores) for i, g in law)
    assert m.error((0, 4), [7, 5, 1]) == 2
    assert m.error((1, 0), [7, 5, 1]) == 2


def leads(scores):
    """By how much each candidate is ahead of the best other one."""
    return [q - max(scores[:i] + scores[i + 1 :]) for i, q in enumerate(scores)]


def held(m, scores, ends):
    """How likely the true lead of what is released lies within an error bar."""
    lead = leads(list(scores))
    return math.fsum(p for (i, gap), p in m.outcomes(scores).items() if ends(gap)[0] <= lead[i] <= ends(gap)[1])


@pytest.mark.slow_after(2)
@BOTH
@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("scale", ["1/2", "3/2"])
def test_the_lead_lies_within_its_bar(noise, level, scale):
    m = NoisyMaxGap(scale, candidates=3, noise=noise)
    for scores in itertools.combinations_with_replacement((0, 1, 2, 4, 9), 3):
        assert held(m, scores, lambda gap: m.lead(gap, level)) >= level - 1e-12


@pytest.mark.parametrize("scores", [(0, -3), (0, -6), (4, 2, -1), (1, 1, 0, -7)], ids=str)
def test_the_gap_of_a_winner_that_is_not_the_best_shows_nothing_of_its_loss(scores):
    """One-sided noise has no memory: the gap has the same geometric law, whatever the loss."""
    m, a = NoisyMaxGap(2, candidates=len(scores)), math.exp(-1 / 2)
    law = m.outcomes(scores)
    for i in np.flatnonzero(np.array(scores) < max(scores)):
        chances = [law[i, gap] for gap in range(20)]
        assert chances == pytest.approx([chances[0] * a**gap for gap in range(20)], rel=1e-9)


@pytest.mark.slow
def test_the_lead_of_one_of_many_lies_within_its_bar():
    """Nine that are equal, or nine that are just behind: much noise makes the winner."""
    m = NoisyMaxGap(2, candidates=10)
    for scores in ([0] * 10, [3] + [0] * 9, [7, 5] + [0] * 8, [9] + [0] * 9):
        assert held(m, scores, lambda gap: m.lead(gap, 0.8)) >= 0.8
    assert m.lead(20, 0.8)[0] > 20 - m.interval(0.8)


def test_a_bar_that_forgets_what_a_winner_needed_is_too_short():
    m, scores, u = NoisyMaxGap(2, candidates=10), [6] + [0] * 9, math.floor(2 * math.log(20))
    high = m.lead(0, 0.9)[1]
    assert held(m, scores, lambda gap: m.lead(gap, 0.9)) >= 0.9
    assert held(m, scores, lambda gap: (gap - u, gap + high)) < 0.85


@BOTH
def test_its_pairs_are_as_tight_as_stated(noise):
    m = NoisyMaxGap("3/2", candidates=3, noise=noise)
    parts = [worst(m.outcomes(x), m.outcomes(y)) / float(m.guarantee(d).epsilon) for x, y, d in m.pairs()]
    assert m.tightness <= max(parts) <= 1 + 1e-9


# Speed, calibration and refusals


@pytest.mark.slow
@pytest.mark.parametrize("make", [NoisyMax, NoisyMaxGap])
def test_a_million_candidates_take_a_few_times_as_long_as_an_argmax_of_gumbel_noise(make):
    scores, rng = np.random.default_rng().integers(0, 1000, 10**6), np.random.default_rng()
    m = make(50, candidates=10**6)

    def race():
        return np.argmax(scores / 50 + rng.gumbel(size=10**6))

    assert times_as_long(lambda: m(scores), race) <= 6  # about 2; a loop over the candidates takes hundreds


@pytest.mark.slow
def test_a_million_equal_candidates_are_chosen_evenly():
    m = NoisyMax(2, candidates=10**6)
    even = [m(np.zeros(10**6, int)) // 10**5 for _ in range(60)]
    assert p_value(np.bincount(even, minlength=10), [0.1] * 10) > ALPHA
    with pytest.raises(InputError, match="few candidates"):
        m.pmf(0, np.zeros(10**6, int))


@given(st.fractions("1/100", 20, max_denominator=1000), st.fractions("1/7", 50, max_denominator=7), st.booleans())
def test_what_is_asked_for_is_kept_exactly(epsilon, size, monotone):
    for make in (NoisyMax, NoisyMaxGap):
        m = make.calibrated(nz.Pure(epsilon), size, candidates=7, monotone=monotone)
        assert m.guarantee(size) == nz.Pure(epsilon)
        rho = make.calibrated(nz.ZCDP(epsilon), size, candidates=7, monotone=monotone)
        assert rho.guarantee(size) <= nz.ZCDP(epsilon)


@pytest.mark.parametrize("make", [NoisyMax, NoisyMaxGap])
@pytest.mark.parametrize("scores", BAD, ids=str)
def test_bad_scores_are_refused_before_any_coin_is_drawn(make, scores):
    with pytest.raises(InputError) as error:
        make(1, candidates=3)(scores, Script())
    assert str(error.value).endswith(".")
    assert ". " not in str(error.value)


@pytest.mark.parametrize(
    "options",
    [{"scale": 0}, {"scale": "1e-30"}, {"scale": 2**61}, {"candidates": 1}, {"monotone": None}, {"noise": "gumbel"}],
)
def test_bad_parameters_are_refused(options):
    with pytest.raises(InputError):
        NoisyMaxGap(**{"scale": 1, "candidates": 3, **options})


@pytest.mark.parametrize("level", [0, 1, -1, math.nan])
def test_bad_levels_are_refused(level):
    for m in (NoisyMax(1, candidates=3), NoisyMax(999, candidates=3), NoisyMaxGap(1, candidates=3)):
        with pytest.raises(InputError, match="level"):
            m.interval(level)


def test_relations_do_not_mix():
    replaced = nz.sensitivity.histogram(neighbours=REPLACE)
    for make in (NoisyMax, NoisyMaxGap):
        with pytest.raises(PrivacyError):
            make.calibrated(nz.Pure(1, neighbours=ADD_REMOVE), replaced, candidates=3)
