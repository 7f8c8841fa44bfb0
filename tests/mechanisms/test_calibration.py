"""Calibration: every mechanism keeps what it is asked to promise, and hardly more."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import noisette as nz
from noisette.errors import InputError, PrivacyError
from noisette.mechanisms.calibration import halved

ADD_REMOVE, REPLACE = nz.Neighbours.ADD_REMOVE, nz.Neighbours.REPLACE
PURE = {
    nz.Geometric: {},
    nz.TruncatedGeometric: {"high": 10},
    nz.Laplace: {},
    nz.Staircase: {},
    nz.KNorm: {"dimension": 3},
    nz.RandomizedResponse: {},
}
epsilons = st.fractions("1/100", 20, max_denominator=1000)
deltas = st.fractions("1/1000000", "1/10", max_denominator=10**6)
guarantees = st.one_of(
    st.builds(nz.Pure, epsilons), st.builds(nz.Approx, epsilons, deltas), st.builds(nz.ZCDP, epsilons)
)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("kind", PURE)
@given(guarantee=guarantees, size=st.integers(1, 50))
def test_what_is_asked_for_is_kept_and_not_wasted(kind, guarantee, size):
    m = nz.calibrate(kind, guarantee, sensitivity=size, **PURE[kind])
    assert m.guarantee(size) <= guarantee
    stated = m.guarantee(size).epsilon
    assert not nz.Pure(stated * Fraction(1001, 1000)) <= guarantee, "the promise should be used up"


@pytest.mark.parametrize("kind", PURE)
def test_a_bare_number_is_a_pure_epsilon(kind):
    assert nz.calibrate(kind, "1/3", **PURE[kind]) == nz.calibrate(kind, nz.Pure("1/3"), **PURE[kind])


def test_relations_must_agree():
    promise = nz.Pure(1, neighbours=REPLACE)
    with pytest.raises(PrivacyError, match="under add/remove"):
        nz.calibrate(nz.Geometric, promise, sensitivity=nz.sensitivity.histogram())
    m = nz.calibrate(nz.Geometric, promise, sensitivity=nz.sensitivity.histogram(neighbours=REPLACE))
    assert m.scale == 2
    assert m.guarantee(nz.sensitivity.histogram(neighbours=REPLACE)) == promise


def test_norms_are_read_off_the_sensitivity():
    four = nz.sensitivity.counts(4)
    assert nz.calibrate(nz.Geometric, nz.Pure(1), sensitivity=four).scale == 4
    assert nz.calibrate(nz.Gaussian, nz.ZCDP("1/2"), sensitivity=four, grid=1).sigma == 2
    assert nz.calibrate(nz.KNorm, nz.Pure(1), sensitivity=four, norm="inf", dimension=4, grid=1).scale == 1
    assert nz.calibrate(nz.Staircase, nz.Pure(1), sensitivity=four).epsilon == Fraction(1, 4)


@pytest.mark.parametrize("guarantee", [nz.Pure(0), nz.ZCDP(0), nz.Approx(0, 0)])
def test_no_budget_is_refused(guarantee):
    with pytest.raises(InputError, match="above 0"):
        nz.calibrate(nz.Geometric, guarantee)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "1e400", None])
@pytest.mark.parametrize("kind", [*PURE, nz.Gaussian])
def test_bad_sensitivities_and_epsilons_are_refused(kind, bad):
    options = PURE.get(kind, {})
    promise = nz.Pure(1) if kind in PURE else nz.ZCDP(1)
    with pytest.raises(InputError) as error:
        nz.calibrate(kind, promise, sensitivity=bad, **options)
    assert str(error.value).count(".") >= 1
    if kind in PURE:
        with pytest.raises(InputError):
            nz.calibrate(kind, bad, **options)


@pytest.mark.parametrize(
    ("kind", "options"),
    [(nz.Geometric, {}), (nz.Laplace, {}), (nz.Gaussian, {}), (nz.KNorm, {"dimension": 2}), (nz.Gaussian, {"grid": 1})],
)
@pytest.mark.parametrize("promise", [nz.Approx(1, "1e-6"), nz.ZCDP("1/10"), nz.Pure(2)])
def test_many_releases_share_a_guarantee(kind, options, promise):
    if kind is nz.Gaussian and isinstance(promise, nz.Pure):
        return
    m = nz.calibrate(kind, promise, sensitivity=2, times=30, **options)
    assert m.guarantee(2) * 30 <= promise
    assert not m.guarantee(2) * 31 <= promise, "the share should be used up"


def test_tight_shares_need_less_noise_than_plain_ones():
    plain = nz.calibrate(nz.Laplace, nz.Approx("1/100", "1e-8")).scale
    tight = nz.calibrate(nz.Laplace, nz.Approx(1, "1e-6"), times=100).scale
    assert tight < plain * Fraction(46, 100)


def test_calibration_for_delta_uses_it():
    """Epsilon grows to ln((e^eps + delta)/(1 - delta)): the tight curve of the geometric mechanism."""
    m = nz.calibrate(nz.Geometric, nz.Approx(1, "0.1"))
    assert 1 / float(m.scale) == pytest.approx(math.log((math.e + 0.1) / 0.9), rel=1e-12)


def bisected(delta, most, inside, outside, times):
    for _ in range(times):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if delta(middle) <= most else (inside, middle)
    return inside, outside


@given(
    root=st.fractions(0, 1, max_denominator=10**6).filter(lambda x: 0 < x < 1),
    power=st.integers(1, 60),
    shift=st.sampled_from([0, 1]),
    times=st.integers(0, 40),
    falling=st.booleans(),
)
def test_halving_ends_where_bisection_does(root, power, shift, times, falling):
    seen, ends = [], (Fraction(1), Fraction(2))
    inside, outside = reversed(ends) if falling else ends

    def delta(x):
        seen.append(x)
        share = 2 - x if falling else x - 1
        return math.ldexp(float(share + shift), -power) ** 3 if share else shift * 2.0 ** (-3 * power)

    most = Fraction(math.ldexp(float(root + shift), -power) ** 3)
    expected = bisected(delta, most, inside, outside, times)
    seen.clear()
    assert halved(delta, most, inside, outside, times=times) == expected
    assert len(seen) <= 2 + 2 * times
    assert halved(delta, most, inside, outside, times=times, monotone=False) == expected


@pytest.mark.parametrize(("kind", "most"), [(nz.Geometric, 4), (nz.Gaussian, 6)])
def test_a_shared_promise_takes_few_compositions(kind, most, monkeypatch):
    looks = []
    known = nz.Pure.delta_at
    for promised in (nz.Pure, nz.ZCDP):
        monkeypatch.setattr(promised, "delta_at", lambda self, e: looks.append(e) or known(self, e))
    made = nz.calibrate(kind, nz.Approx(1, "1e-9"), times=2)
    assert len(looks) <= most, "bisection takes 16 and 20"
    assert made.guarantee(1) * 2 <= nz.Approx(1, "1e-9")


@given(
    root=st.fractions("1/100", "99/100", max_denominator=10**6),
    wrong=st.fractions("-1/50", "1/50", max_denominator=10**6),
    times=st.integers(0, 40),
)
def test_a_wrong_guess_changes_nothing(root, wrong, times):
    most, ends = Fraction(float(root) ** 3), (Fraction(0), Fraction(1))

    def delta(x):
        return float(x) ** 3

    assert halved(delta, most, *ends, times=times, near=root + wrong) == bisected(delta, most, *ends, times)


def test_a_good_guess_takes_four_looks(monkeypatch):
    looks, known = [], nz.Gaussian.delta_at
    monkeypatch.setattr(nz.Gaussian, "delta_at", lambda self, *a: looks.append(self.sigma) or known(self, *a))
    nz.calibrate(nz.Gaussian, nz.Approx(1, "1e-9"))
    assert len(looks) <= 5, "bisection takes 45"


def test_a_shared_promise_without_a_delta_is_a_pure_one():
    assert nz.calibrate(nz.Geometric, nz.Approx(1, 0), times=2) == nz.calibrate(nz.Geometric, nz.Pure("1/2"))
    with pytest.raises(InputError, match="keeps no pure guarantee"):
        nz.calibrate(nz.Gaussian, nz.Approx(1, 0), times=2)


def test_a_shared_promise_without_an_epsilon_has_gaussian_noise():
    made = nz.calibrate(nz.Gaussian, nz.Approx(0, "1e-3"), times=2)
    assert made.guarantee(1) * 2 <= nz.Approx(0, "1e-3")
    assert float(made.sigma) == pytest.approx(
        2**0.5 * float(nz.calibrate(nz.Gaussian, nz.Approx(0, "1e-3")).sigma), rel=1e-3
    )


class Forgetful(nz.Geometric):
    """Geometric noise that forgets its sensitivity."""

    @classmethod
    def calibrated(cls, guarantee, sensitivity=1):
        return super().calibrated(guarantee, 1)


@pytest.mark.parametrize("options", [{"sensitivity": 10}, {"sensitivity": nz.sensitivity.counts(3)}, {"times": 3}])
def test_a_mechanism_that_forgets_its_sensitivity_is_not_handed_out(options):
    assert nz.calibrate(Forgetful, nz.Pure(1)).scale == 1
    with pytest.raises(PrivacyError, match=r"^Forgetful does not keep .* it was calibrated for: .*\.$"):
        nz.calibrate(Forgetful, nz.Pure(1), **{"sensitivity": 2} | options)


def test_a_mechanism_without_a_guarantee_at_its_sensitivity_is_not_handed_out():
    class Short(Forgetful):
        def guarantee(self, distance=1):
            if distance != 1:
                raise InputError("This one is for a distance of 1.")
            return super().guarantee(1)

    with pytest.raises(PrivacyError, match="does not keep"):
        nz.calibrate(Short, nz.Pure(1), sensitivity=2)


RANGES = {
    nz.Exponential: {"candidates": 5},
    nz.mechanisms.JointTop: {"candidates": 9, "k": 2},
    nz.mechanisms.GumbelTop: {"candidates": 9, "k": 1},
}


@pytest.mark.parametrize("kind", RANGES)
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(Fraction("0.03"), "1e-19"), (600, "1e-6"), (577, "4e-16"), (9, "1e-290")]
)
def test_awkward_promises_are_kept_by_the_stated_guarantee(kind, epsilon, delta):
    """A tiny delta lies in the last digits of a large epsilon, and no float has those."""
    assert nz.calibrate(kind, nz.Approx(epsilon, delta), **RANGES[kind]).guarantee(1) <= nz.Approx(epsilon, delta)


def test_a_coarse_grid_keeps_its_promise_by_its_own_delta():
    promise = nz.Approx("0.0094", "9.6e-8")
    made = nz.calibrate(nz.Gaussian, promise, grid="1/8")
    assert not made.guarantee(1) <= promise
    assert made.delta_at(promise.epsilon) <= promise.delta


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        (
            nz.Laplace,
            {"sensitivty": 3},
            "takes grid, epsilon, delta, rho, sensitivity, times and no sensitivty: did you",
        ),
        (nz.Quantile, {"quantile": "1/2"}, "calibrate(Quantile, …) takes q, cells, groups, shift, "),
        (nz.Quantile, {"q": "1/2"}, "calibrate(Quantile, …) needs cells: write cells=…."),
        (nz.mechanisms.NearestPlace, {"k": 3, "place": (0, 0)}, "needs columns and rows: write columns=…, rows=…."),
        (nz.mechanisms.NearestPlace, {"radius": 3}, "takes k, columns, rows, place, prior, epsilon"),
        (nz.mechanisms.UnboundedQuantile, {"q": "1/2", "stepz": 9}, "did you mean steps?"),
        (Forgetful, {"grid": 3}, "calibrate(Forgetful, …) takes epsilon, delta, rho, sensitivity, times and no grid"),
    ],
)
def test_an_option_that_does_not_exist_or_is_missing_gets_a_sentence(kind, options, said):
    with pytest.raises(InputError) as error:
        nz.calibrate(kind, nz.Pure(1), **options)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_options_that_a_class_passes_on_are_those_of_its_base():
    class Passing(nz.Laplace):
        @classmethod
        def calibrated(cls, guarantee, sensitivity=1, **options):
            return super().calibrated(guarantee, sensitivity, **options)

    assert nz.calibrate(Passing, nz.Pure(1), grid="1/4").grid == Fraction(1, 4)
    with pytest.raises(InputError, match="did you mean grid"):
        nz.calibrate(Passing, nz.Pure(1), grit="1/4")
