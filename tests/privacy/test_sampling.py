"""Amplification by subsampling: check values, enumeration of samples, peers' brackets, refusals."""

import itertools
import math
from fractions import Fraction

import pytest

import noisette as nz
from noisette.errors import InputError, PrivacyError
from noisette.privacy import Neighbours, Profile
from noisette.privacy.guarantee import once
from noisette.privacy.loss import LatticeLaplace, Normal, Response, Subsampled
from noisette.privacy.sampling import amplified, fixed_size, poisson

AR, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE


def gaussian(sigma: int) -> nz.ZCDP:
    return nz.ZCDP(Fraction(1, 2 * sigma**2), ledger=once(Normal(Fraction(1, sigma))))


# Check values


def test_the_plain_statement():
    found = poisson(nz.Approx(1, "1e-6"), "0.1")
    assert float(found.eps) == 0.1585650787404291
    assert found.delta0 == Fraction(1, 10**7)
    assert found.neighbours is AR
    assert found.ledger.parts == ((Subsampled(Response(Fraction(1), Fraction(1, 10**6)), Fraction(1, 10)), 1),)
    fixed = fixed_size(nz.Approx(1, "1e-6"), 10, 100)
    assert (fixed.eps, fixed.delta0, fixed.neighbours) == (found.eps, found.delta0, REPLACE)


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
    assert 0.0002071214860213921 <= step.delta(1) <= 0.0002071214860213921 * 1.001


def test_a_thousand_steps_lie_in_the_peers_bracket():
    total = poisson(gaussian(1), "0.01") * 1000
    assert 1.7782397 <= total.epsilon("1e-5") <= 1.8282437 * (1 + 1e-5)


@pytest.mark.parametrize("one", [nz.Pure(1), nz.Approx(1, "1e-6"), nz.ZCDP(1), nz.Gaussian(3).guarantee(1)])
def test_everybody_in_the_sample_changes_nothing(one):
    assert poisson(one, 1) == one.under(AR)
    assert poisson(one, 1).ledger == one.ledger


def test_a_fixed_size_of_everybody_changes_nothing():
    assert fixed_size(nz.Approx(1, "1e-6"), 7, 7) == nz.Approx(1, "1e-6", neighbours=REPLACE)


def test_a_sample_of_a_sample_is_a_sample():
    for one in (gaussian(2), nz.Laplace(2).guarantee(1)):
        twice, once_ = poisson(poisson(one, "0.5"), "0.2"), poisson(one, "0.1")
        assert twice.ledger == once_.ledger
    assert poisson(poisson(nz.Pure(1), "0.5"), "0.2").eps == pytest.approx(poisson(nz.Pure(1), "0.1").eps, rel=1e-20)


def test_sums_of_samples_compose_tightly():
    step = poisson(nz.Laplace(1).guarantee(1), "0.05")
    assert isinstance(step.ledger.parts[0][0].base, LatticeLaplace)
    assert (step * 500).epsilon("1e-6") < 0.25 * float(500 * step.eps)


# Enumeration: the release tells, with odds of truth e^epsilon, whether a marked person is among those taken


EPSILON, TRUTH = math.log(3), Fraction(3, 4)


def told(taken: tuple[bool, ...]) -> Fraction:
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
                * told(tuple(p for p, i in zip(people, inside, strict=True) if i))
                for inside in itertools.product([False, True], repeat=len(people))
            ),
            Fraction(0),
        )

    tables = [people for n in range(4) for people in itertools.product([False, True], repeat=n)]
    worst = max(ratios(released(x), released((*x, new))) for x in tables for new in (False, True))
    assert worst == 1 + q * 2
    assert float(poisson(nz.Pure(Fraction(EPSILON)), q).eps) == pytest.approx(math.log(worst))


def test_samples_of_fixed_size_one_by_one():
    n, m = 5, 2

    def released(people: tuple[bool, ...]) -> Fraction:
        samples = list(itertools.combinations(people, m))
        return sum(map(told, samples), Fraction(0)) / len(samples)

    tables = list(itertools.product([False, True], repeat=n))
    worst = max(ratios(released(x), released((*x[:-1], not x[-1]))) for x in tables)
    assert worst == 1 + Fraction(m, n) * 2
    assert float(fixed_size(nz.Pure(Fraction(EPSILON)), m, n).eps) == pytest.approx(math.log(worst))


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
    with pytest.raises(PrivacyError, match="restate it as Approx"):
        fixed_size(gaussian(1), 1, 10)


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
