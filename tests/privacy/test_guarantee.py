"""Guarantees: exact numbers, basic composition, implication, groups and relations."""

import math
from fractions import Fraction
from functools import reduce
from operator import add
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

import noisette as nz
from noisette.errors import InputError, PrivacyError
from noisette.mechanisms import Gaussian, Geometric
from noisette.privacy import as_promise
from noisette.privacy.guarantee import losses_of, together
from noisette.privacy.neighbours import Neighbours

ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
epsilons = st.fractions(0, 20, max_denominator=1000)
deltas = st.fractions(0, "1/2", max_denominator=10**9)
pures = st.builds(nz.Pure, epsilons)
zcdps = st.builds(nz.ZCDP, epsilons)
approxes = st.builds(nz.Approx, epsilons, st.fractions(0, "1/100", max_denominator=10**9))


def test_tenths_are_exact():
    assert nz.Pure(0.1) + nz.Pure("0.1") + nz.Pure("1/10") == nz.Pure("0.3") == nz.Pure("0.1") * 3
    assert nz.Pure(0.1).epsilon == Fraction(1, 10)


@given(st.one_of(pures, zcdps, approxes), st.integers(0, 20))
def test_k_fold_is_repeated_addition(g, k):
    total = g * 0
    for _ in range(k):
        total = total + g
    assert g * k == k * g == total


@pytest.mark.slow
@given(st.lists(st.one_of(pures, zcdps), min_size=3, max_size=3))
def test_addition_commutes_and_associates_within_a_kind(gs):
    a, b, c = gs
    assert a + b == b + a
    if len({type(g) for g in gs}) == 1:
        assert (a + b) + c == a + (b + c)


@given(epsilons, epsilons)
def test_pure_delta_is_the_randomized_response_curve(e0, e):
    expected = max(0.0, (math.exp(float(e0)) - math.exp(float(e))) / (1 + math.exp(float(e0))))
    got = nz.Pure(e0).delta_at(e)
    assert got >= expected * (1 - 1e-12)
    assert got == pytest.approx(expected, rel=1e-9, abs=1e-14)


@given(epsilons, deltas, deltas)
def test_epsilon_inverts_delta_and_rounds_up(e0, d0, d):
    g = nz.Approx(e0, d0)
    eps = g.epsilon_at(d)
    if d < d0:
        assert eps == math.inf
    else:
        assert Fraction(g.delta_at(Fraction(eps))) <= d + Fraction(1, 10**15)


@pytest.mark.parametrize(
    ("rho", "delta", "epsilon"),
    [("0.005", "1e-6", 0.4299414688369493), ("0.1", "1e-10", 2.8818280091742423), ("1", "1e-10", 10.03434358134763)],
)
def test_zcdp_conversion_is_the_best_known(rho, delta, epsilon):
    got = nz.ZCDP(rho).epsilon_at(delta)
    assert epsilon * (1 - 1e-10) <= got <= epsilon * (1 + 1e-7)


@given(st.fractions("1/1000", 5), st.fractions("1/10", 20))
def test_zcdp_delta_and_epsilon_agree_and_never_undercut_a_gaussian(rho, e):
    from noisette.exact.rational import sqrt_down
    from noisette.privacy.convert import gaussian_delta

    delta = nz.ZCDP(rho).delta_at(e)
    assert delta >= gaussian_delta(sqrt_down(2 * rho), e) * (1 - 1e-9)
    if 1e-250 < delta < 0.1:
        assert nz.ZCDP(rho).epsilon_at(Fraction(delta)) == pytest.approx(float(e), rel=1e-5)


@given(pures, pures)
def test_implication_of_pure_guarantees_is_the_order_of_epsilons(a, b):
    assert (a <= b) == (a.epsilon <= b.epsilon)


def test_implications_across_kinds():
    assert nz.Pure(1) <= nz.Approx(1, 0)
    assert nz.Pure(1) <= nz.ZCDP("1/2")
    assert not nz.Pure("1.0001") <= nz.ZCDP("1/2")
    assert not nz.ZCDP("0.1") <= nz.Pure(10)
    assert nz.ZCDP("0.1") <= nz.Approx("2.142", "1e-6")
    assert not nz.ZCDP("0.1") <= nz.Approx("2.141", "1e-6")
    assert nz.Pure("1.000001") <= nz.Approx(1, "1e-6")  # a little delta buys a little epsilon
    assert not nz.Pure("1.00001") <= nz.Approx(1, "1e-6")
    assert not nz.Approx(1, "1e-6") <= nz.ZCDP(100)


def test_mixed_sums():
    assert nz.Pure(1) + nz.ZCDP("1/2") == nz.ZCDP(1)
    mixed = nz.Approx(1, "1e-9") + nz.ZCDP("0.1")
    assert isinstance(mixed, nz.Profile)
    assert 1 < mixed.epsilon_at("1e-6") < 1 + nz.ZCDP("0.1").epsilon_at("9e-7")
    assert mixed <= nz.Approx("3.2", "1e-6")
    much = nz.Approx(1, "0.6") + nz.Approx(1, "0.6")
    assert much.delta_at(5) == pytest.approx(0.84), "deltas compose as 1 - (1 - d)^k, so 0.6 twice is not yet nothing"
    assert (much + nz.Pure(1)).epsilon_at("0.5") == math.inf
    with pytest.raises(PrivacyError, match="not a budget"):
        nz.Pure(1) <= mixed  # noqa: B015


def test_groups():
    assert nz.Pure("1/2").group(3) == nz.Pure("3/2")
    assert nz.ZCDP("1/2").group(3) == nz.ZCDP("9/2")
    pair = nz.Approx("0.5", "1e-6").group(3)
    assert pair.epsilon == Fraction(3, 2)
    assert 5.3670030991591735e-06 <= float(pair.delta) * (1 + 1e-15) <= 5.36700309916e-06


def test_relations_do_not_mix():
    a, r = nz.Pure(1, neighbours=ADD_REMOVE), nz.Pure(1, neighbours=REPLACE)
    with pytest.raises(PrivacyError, match="add/remove"):
        a + r
    with pytest.raises(PrivacyError, match="add/remove"):
        a <= r  # noqa: B015
    assert (a + nz.Pure(1)).neighbours is ADD_REMOVE
    assert a.under(REPLACE) == nz.Pure(2, neighbours=REPLACE)
    assert nz.ZCDP(1, neighbours=ADD_REMOVE).under(REPLACE) == nz.ZCDP(4, neighbours=REPLACE)
    with pytest.raises(PrivacyError, match="says nothing"):
        r.under(ADD_REMOVE)


@pytest.mark.parametrize("bad", [-1, math.nan, math.inf, True, "1e400", "1e999999999", "", "one", None, 10**7, [1]])
def test_bad_epsilons_get_one_sentence(bad):
    with pytest.raises(InputError) as error:
        nz.Pure(bad)
    assert str(error.value).endswith(".")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("bad", [-1, 1, 2, math.nan, True, "1e400"])
def test_bad_deltas_get_one_sentence(bad):
    with pytest.raises(InputError, match="delta"):
        nz.Approx(1, bad)


@pytest.mark.parametrize("k", [-1, 1.5, True, "3"])
def test_bad_multiples_are_refused(k):
    with pytest.raises(InputError, match="whole number"):
        nz.Pure(1) * k


def test_guarantees_print_for_people_and_for_python():
    assert str(nz.Approx("1/2", "1e-6", neighbours=REPLACE)) == "(0.5, 1e-06)-DP under replace"
    assert str(nz.Pure("1/3")) == "0.333333…-DP"
    assert eval(repr(nz.Approx("1/3", "1e-6")), vars(nz)) == nz.Approx("1/3", "1e-6")


# The algebra of promises

PROMISES = [nz.Pure("1/3"), nz.Approx("1/3", "1e-6"), nz.ZCDP("1/7")]


@pytest.mark.parametrize("promise", PROMISES, ids=repr)
def test_shares_of_a_promise_add_up_to_it(promise):
    parts = [promise.share(part) for part in ("1/2", "1/3", "1/6")]
    together = parts[0] + parts[1] + parts[2]
    assert together == promise
    assert promise.share(1) == promise
    assert [part.size for part in parts] == [promise.size / 2, promise.size / 3, promise.size / 6]
    assert promise.share("1/2", delta=1).delta == promise.delta
    pure = promise.share("1/2", delta=0)
    assert pure.delta == 0
    assert pure.is_pure == (not isinstance(promise, nz.ZCDP))


@pytest.mark.parametrize("made", [nz.Geometric(3).guarantee(1), nz.Gaussian(3).guarantee(1) + nz.Approx(1, "1e-9")])
def test_restating_changes_the_relation_alone(made):
    for relation in (None, *nz.Neighbours):
        again = made.restated(relation)
        assert (type(again), again.numbers, again.losses, again.neighbours) == (
            type(made),
            made.numbers,
            made.losses,
            relation,
        )
        assert again.delta_at(1) == made.delta_at(1)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (1, nz.Pure(1)),
        (0.1, nz.Pure("1/10")),
        ("1/10", nz.Pure("1/10")),
        (" 0.1 , 1e-8 ", nz.Approx("0.1", "1e-8")),
        ((0.1, 1e-8), nz.Approx("0.1", "1e-8")),
        (["1/10", 0], nz.Approx("0.1", 0)),
        ("rho=0.01", nz.ZCDP("0.01")),
        (nz.ZCDP(1), nz.ZCDP(1)),
    ],
)
def test_promises_are_read_as_people_write_them(written, meant):
    assert as_promise(written) == meant


@pytest.mark.parametrize("written", ["", "x", "1,2", (1, 2, 3), (), "rho=", "1;2", True, None, -1, math.nan, {"a": 1}])
def test_what_is_no_promise_is_refused_by_name(written):
    with pytest.raises(InputError, match=r"^--spend must be an epsilon \(0\.1\), an epsilon and a delta"):
        as_promise(written, "--spend")


def test_gaussian_differential_privacy_is_a_profile():
    mu, e = 0.5, 1.0
    phi = NormalDist().cdf
    truth = phi(mu / 2 - e / mu) - math.exp(e) * phi(-mu / 2 - e / mu)
    assert nz.Profile.gaussian("1/2").delta_at(1) == pytest.approx(truth, rel=1e-9)
    four = nz.Profile.gaussian("1/2") * 4
    assert four.delta_at(1) == pytest.approx(nz.Profile.gaussian(1).delta_at(1), rel=1e-9), "mu adds in squares"


SUMMANDS = [
    *PROMISES, nz.Pure(0), nz.Pure(7), nz.ZCDP(2), nz.Approx(1, "1e-6") + nz.ZCDP("0.1"),
    *(kind(scale).guarantee(1) for kind in (Geometric, Gaussian) for scale in ("7/3", 5, 11)),
]  # fmt: skip


@given(st.lists(st.sampled_from(SUMMANDS), min_size=1, max_size=6))
def test_together_is_one_after_the_other(parts):
    found, expected = together(parts), reduce(add, parts)
    assert found == expected
    assert losses_of(found) == losses_of(expected) or len(parts) == 1


def test_together_keeps_relations_apart():
    with pytest.raises(PrivacyError, match="does not add to one"):
        together([nz.Pure(1, neighbours=Neighbours.REPLACE), nz.Pure(1, neighbours=Neighbours.ADD_REMOVE)])
