"""Amplification by subsampling: check values, enumeration of samples, peers' brackets, refusals."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import noisette as nz
from noisette.errors import InputError, PrivacyError
from noisette.privacy import Neighbours, Profile
from noisette.privacy.guarantee import once
from noisette.privacy.pld.loss import FixedSample, LatticeLaplace, Normal, Response, Subsampled
from noisette.privacy.sampling import amplified, fixed_size, poisson

AR, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE


def gaussian(sigma: int) -> nz.ZCDP:
    return nz.ZCDP(Fraction(1, 2 * sigma**2), losses=once(Normal(Fraction(1, sigma))))


# Check values


def test_the_plain_statement():
    found = poisson(nz.Approx(1, "1e-6"), "0.1")
    assert float(found.epsilon) == 0.1585650787404291
    assert found.delta == Fraction(1, 10**7)
    assert found.neighbours is AR
    assert found.losses.parts == ((Subsampled(Response(Fraction(1), Fraction(1, 10**6)), Fraction(1, 10)), 1),)
    fixed = fixed_size(nz.Approx(1, "1e-6"), 10, 100)
    assert (fixed.epsilon, fixed.delta, fixed.neighbours) == (found.epsilon, found.delta, REPLACE)


@pytest.mark.parametrize("e", ["0.001", "1", "30", "5000", "1000000"])
@pytest.mark.parametrize("q", ["1e-6", "0.1", "0.999"])
def test_epsilon_is_rounded_up_and_never_above_its_own(e, q):
    e0, rate = Fraction(e), Fraction(q)
    found = amplified(e0, rate)
    assert 0 < found < e0
    if e0 <= 30:
        truth = math.log1p(float(rate) * math.expm1(float(e0)))
        assert float(found) == pytest.approx(truth, rel=1e-12)
        assert Fraction(truth) * (1 - Fraction(1, 2**48)) <= found
    assert amplified(e0, Fraction(1)) == e0


def test_one_step_of_sampled_gaussian_noise():
    step = poisson(gaussian(1), "0.1")
    assert isinstance(step, Profile)
    assert 0.0002071214860213921 <= step.delta_at(1) <= 0.0002071214860213921 * 1.001


def test_a_thousand_steps_lie_in_the_peers_bracket():
    total = poisson(gaussian(1), "0.01") * 1000
    assert 1.7782397 <= total.epsilon_at("1e-5") <= 1.8282437 * (1 + 1e-5)


@pytest.mark.parametrize("one", [nz.Pure(1), nz.Approx(1, "1e-6"), nz.ZCDP(1), nz.Gaussian(3).guarantee(1)])
def test_everybody_in_the_sample_changes_nothing(one):
    assert poisson(one, 1) == one.under(AR)
    assert poisson(one, 1).losses == one.losses


def test_a_fixed_size_of_everybody_changes_nothing():
    assert fixed_size(nz.Approx(1, "1e-6"), 7, 7) == nz.Approx(1, "1e-6", neighbours=REPLACE)


def test_a_sample_of_a_sample_is_a_sample():
    for one in (gaussian(2), nz.Laplace(2).guarantee(1)):
        twice, once_ = poisson(poisson(one, "0.5"), "0.2"), poisson(one, "0.1")
        assert twice.losses == once_.losses
    assert poisson(poisson(nz.Pure(1), "0.5"), "0.2").epsilon == pytest.approx(
        poisson(nz.Pure(1), "0.1").epsilon, rel=1e-20
    )


def test_sums_of_samples_compose_tightly():
    step = poisson(nz.Laplace(1).guarantee(1), "0.05")
    assert isinstance(step.losses.parts[0][0].base, LatticeLaplace)
    assert (step * 500).epsilon_at("1e-6") < 0.25 * float(500 * step.epsilon)


# Enumeration: the release tells, with odds of truth e^epsilon, whether a marked person is among those taken


EPSILON, TRUTH = math.log(3), Fraction(3, 4)


def answered(taken: tuple[bool, ...]) -> Fraction:
    return TRUTH if any(taken) else 1 - TRUTH


def ratios(p: Fraction, q: Fraction) -> Fraction:
    return max(p / q, q / p, (1 - p) / (1 - q), (1 - q) / (1 - p))


def test_poisson_samples_one_by_one():
    """Under add/remove, with one marked person, the bound is attained; no table does worse."""
    q = Fraction(1, 5)

    def released(people: tuple[bool, ...]) -> Fraction:
        return sum(
            (
                math.prod((q if i else 1 - q for i in inside), start=Fraction(1))
                * answered(tuple(p for p, i in zip(people, inside, strict=True) if i))
                for inside in itertools.product([False, True], repeat=len(people))
            ),
            Fraction(0),
        )

    tables = [people for n in range(4) for people in itertools.product([False, True], repeat=n)]
    worst = max(ratios(released(x), released((*x, new))) for x in tables for new in (False, True))
    assert worst == 1 + q * 2
    assert float(poisson(nz.Pure(Fraction(EPSILON)), q).epsilon) == pytest.approx(math.log(worst))


def test_samples_of_fixed_size_one_by_one():
    n, m = 5, 2

    def released(people: tuple[bool, ...]) -> Fraction:
        samples = list(itertools.combinations(people, m))
        return sum(map(answered, samples), Fraction(0)) / len(samples)

    tables = list(itertools.product([False, True], repeat=n))
    worst = max(ratios(released(x), released((*x[:-1], not x[-1]))) for x in tables)
    assert worst == 1 + Fraction(m, n) * 2
    assert float(fixed_size(nz.Pure(Fraction(EPSILON)), m, n).epsilon) == pytest.approx(math.log(worst))


def noisy_counts(people: tuple[bool, ...], m: int, noise: np.ndarray) -> np.ndarray:
    """The law of a count of m of the people, drawn without replacement, plus noise."""
    samples = list(itertools.combinations(people, m))
    law = np.zeros(len(noise) + m)
    for sample in samples:
        law[sum(sample) : sum(sample) + len(noise)] += noise / len(samples)
    return law


def hockey(P: np.ndarray, Q: np.ndarray, x: float) -> float:
    return float(np.maximum(0, P - math.exp(x) * Q).sum())


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("e0", [0.4, 1.5, 3.0])
@pytest.mark.parametrize(("n", "m"), [(4, 1), (5, 2), (5, 4)])
def test_the_pair_of_fixed_samples_dominates_at_every_epsilon(e0, n, m):
    """All neighbours, one by one, above 0 and below; twice together too, in both directions. Nine tenths are beaten."""
    noise = np.exp(-e0 * abs(np.arange(-100, 101)))
    noise /= noise.sum()
    pairs = {
        (noisy_counts(x, m, noise).tobytes(), noisy_counts((*x[:-1], not x[-1]), m, noise).tobytes())
        for x in itertools.product([False, True], repeat=n)
    }
    laws = [(np.frombuffer(P), np.frombuffer(Q)) for P, Q in pairs]
    one = fixed_size(nz.Geometric(1 / Fraction(e0)).guarantee(1), m, n)
    loss, short = (
        FixedSample(Response(Fraction(e0)), Fraction(m, n)),
        FixedSample(Response(Fraction(e0)), Fraction(9 * m, 10 * n)),
    )
    beaten = 0
    for x in np.linspace(-e0, e0, 17):
        truth = max(hockey(P, Q, x) for P, Q in laws)
        for pair in (loss, FixedSample(LatticeLaplace(Fraction(e0), 1), Fraction(m, n))):
            P, Q = pair.above(np.array([x])) if pair.atoms() is None else masses_above(pair, x)
            assert truth <= float(np.sum(P - math.exp(x) * Q)) + 1e-12
        assert math.isclose(sum(loss.atoms()[1]), 1)
        P, Q = masses_above(short, x)
        beaten += truth > P - math.exp(x) * Q + 1e-9
        if x >= 0:
            twice = max(
                hockey(np.outer(P, R).ravel(), np.outer(Q, S).ravel(), x)
                for (P, Q), (R, S) in itertools.product(laws, laws)
            )
            assert truth <= one.delta_at(Fraction(x)) + 1e-12
            assert twice <= (one * 2).delta_at(Fraction(x)) + 1e-12
    assert beaten


def masses_above(loss: FixedSample, x: float) -> tuple[float, float]:
    losses, p = loss.atoms()
    return float(p[losses > x].sum()), float((p * np.exp(-losses))[losses > x].sum())


def test_fixed_samples_compose_as_losses():
    """Below what the amplified epsilon alone gives, and above Poisson samples, whose people cannot be exchanged."""
    one = fixed_size(nz.Pure(1), 10, 100)
    plain = (nz.Pure(one.epsilon, neighbours=REPLACE) * 100).epsilon_at("1e-6")
    assert (one * 100).epsilon_at("1e-6") < 0.8 * plain
    noisy = fixed_size(gaussian(2), 10, 100)
    assert isinstance(noisy, Profile)
    assert 0 < (noisy * 100).epsilon_at("1e-6") < (gaussian(2) * 100).epsilon_at("1e-6") / 4
    assert fixed_size(one, 1, 2).losses == fixed_size(nz.Pure(1), 1, 20).losses
    both = fixed_size(nz.Approx(1, "1e-4"), 1, 4) * 8
    assert both.epsilon_at("1e-5") == math.inf  # an infinite loss stays possible: 2e-4
    assert both.epsilon_at("1e-2") < 8 * one.epsilon * 3


# Refusals


def test_the_relation_must_fit():
    with pytest.raises(PrivacyError, match="under replace use fixed_size"):
        poisson(nz.Pure(1, neighbours=REPLACE), "0.1")
    with pytest.raises(PrivacyError, match="under add/remove use poisson"):
        fixed_size(nz.Pure(1, neighbours=AR), 1, 10)
    assert poisson(nz.Pure(1, neighbours=AR), "0.1") == poisson(nz.Pure(1), "0.1")


@pytest.mark.parametrize("many", [nz.Pure("0.1") * 3, nz.Pure(1) + nz.Approx(1, "1e-6"), gaussian(1) + nz.ZCDP("0.1")])
def test_sums_are_refused(many):
    with pytest.raises(PrivacyError, match="sample each release"):
        poisson(many, "0.1")
    with pytest.raises(PrivacyError, match="sample each release"):
        fixed_size(many, 1, 10)


def test_zcdp_alone_is_refused():
    with pytest.raises(PrivacyError, match="zCDP alone"):
        poisson(nz.ZCDP("0.1"), "0.1")
    with pytest.raises(PrivacyError, match="zCDP alone"):
        fixed_size(nz.ZCDP("0.1"), 1, 10)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: poisson(nz.Pure(1), 0),
        lambda: poisson(nz.Pure(1), "1.1"),
        lambda: poisson(nz.Pure(1), "-0.1"),
        lambda: poisson(1, "0.1"),
        lambda: fixed_size(nz.Pure(1), 11, 10),
        lambda: fixed_size(nz.Pure(1), 0, 10),
        lambda: fixed_size(nz.Pure(1), 0.5, 10),
    ],
)
def test_wrong_parameters(wrong):
    with pytest.raises(InputError):
        wrong()
