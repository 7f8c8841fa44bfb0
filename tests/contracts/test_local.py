"""Every example of every local protocol keeps its contract, and every broken twin is convicted.

The law of `client` is a rational function of `odds(epsilon)`, so privacy, bias and variance are computed over all
reports. Draws are judged at ALPHA; a twin is convicted by far more than that.
"""

import importlib
import pkgutil
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.goodness import ALPHA, fewest, p_value
from tests.tapes import misfits, walk

import noisette.local
from noisette.errors import InputError
from noisette.exact.random import SYSTEM
from noisette.exact.rational import exp_down, exp_up
from noisette.local.frequencies import FrequencyOracle, PureProtocol
from noisette.privacy import Neighbours, Pure

EXAMPLES = [
    example
    for module in pkgutil.iter_modules(noisette.local.__path__, "noisette.local.")
    for example in getattr(importlib.import_module(module.name), "examples", [])
]
FINE = Fraction(1, 1 << 60)


def named(example):
    return repr(example).replace("Fraction", "").replace(" ", "")


ORACLES = [example for example in EXAMPLES if FrequencyOracle in type(example).__mro__]


def one_of_each(protocols):
    """All of them, of which one of each class is quick: that with the fewest reports, but more than two."""
    classes = {type(protocol) for protocol in protocols}
    sizes = [(len(list(p.reports())), p) for p in protocols]
    quick = [min((n <= 2, n, i) for i, (n, p) in enumerate(sizes) if type(p) is each)[-1] for each in classes]
    marks = [() if i in quick else pytest.mark.slow for i in range(len(protocols))]
    return [pytest.param(p, marks=mark, id=named(p)) for p, mark in zip(protocols, marks, strict=True)]


every_example = pytest.mark.parametrize("protocol", EXAMPLES, ids=named)
every_oracle = pytest.mark.parametrize("protocol", ORACLES, ids=named)


class Twin:
    """A protocol some of whose methods are replaced by others."""

    def __init__(self, protocol, **changed):
        self.protocol, self.changed = protocol, changed

    def __getattr__(self, name):
        return self.changed[name] if name in self.changed else getattr(self.protocol, name)


# What is computed: each check returns the faults that it finds. Some are about oracles, whose estimates are shares.


def law_faults(protocol):
    """Probabilities that do not sum to one."""
    return [v for v in protocol.values() if sum(protocol.likelihood(y, v) for y in protocol.reports()) != 1]


def losses(protocol):
    """The largest ratio of probabilities of one report, over all pairs of values."""
    values = list(protocol.values())
    laws = [[protocol.likelihood(y, v) for v in values] for y in protocol.reports()]
    return max(max(chances) / min(chances) for chances in laws)


def privacy_faults(protocol):
    epsilon, loss = protocol.guarantee().epsilon, losses(protocol)
    faults = ["not private"] if loss > exp_up(epsilon) else []
    return faults + (["not tight"] if loss < exp_down(epsilon) * (1 - FINE) else [])


def moment_faults(protocol):
    """Expectation and variance of the estimate from one report, by enumeration, against what is stated."""
    faults, reports = [], list(protocol.reports())
    scores = np.array([protocol.estimate(np.array([y])).shares for y in reports])
    for value in protocol.values():
        chances = np.array([float(protocol.likelihood(y, value)) for y in reports])
        truth = np.array(value, float) if isinstance(value, tuple) else np.arange(protocol.domain) == value
        mean = chances @ scores
        if not np.allclose(mean, truth, atol=1e-9):
            faults.append("biased")
        if not np.allclose(chances @ (scores - mean) ** 2, protocol.spread(truth.astype(float)), rtol=1e-9):
            faults.append("variance")
    return faults


def support_faults(protocol):
    """Pairs of values whose exact chance of support is not p or q."""
    faults = []
    supports = [(y, protocol.support(protocol.counted(np.array([y])))) for y in protocol.reports()]
    for own in protocol.values():
        chances = [(support, protocol.likelihood(y, own)) for y, support in supports]
        for v in protocol.values():
            exact = sum(chance for support, chance in chances if support[v])
            if exact != (protocol.own if v == own else protocol.other):
                faults.append((own, v))
    return faults


@every_example
def test_it_promises_a_pure_epsilon_to_each_person(protocol):
    assert protocol.guarantee() == Pure(protocol.epsilon, neighbours=Neighbours.REPLACE)


@pytest.mark.slow_after(3)
@every_example
def test_the_law_is_private_and_tight(protocol):
    assert law_faults(protocol) == []
    assert privacy_faults(protocol) == []


@pytest.mark.slow_after(3)
@every_oracle
def test_the_estimate_is_unbiased_and_has_the_stated_variance(protocol):
    assert moment_faults(protocol) == []


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("protocol", [e for e in ORACLES if PureProtocol in type(e).__mro__], ids=named)
def test_own_and_other_are_exact(protocol):
    assert support_faults(protocol) == []


@every_oracle
def test_the_stated_variance_of_a_share_is_the_one_of_shares(protocol):
    k = protocol.domain
    for share in (0.0, 0.4, 1.0):
        rest = (1 - share) / max(1, k - 1)
        true = [np.where(np.arange(k) == v, share, rest) for v in range(k)]
        mean = np.mean([protocol.spread(shares)[v] for v, shares in enumerate(true)])
        assert protocol.variance(7, share=share) == pytest.approx(mean / 7, rel=1e-9)


# What is drawn


def tape_faults(protocol, value):
    """Reports whose probability over the coin tapes of the client is not the stated one, as far as tapes are walked."""
    least = min(Fraction(1, 3000), Fraction(1, 20 * len(list(protocol.reports()))))
    walked = walk(protocol.client, value, least=least)
    return misfits(walked, lambda y: protocol.likelihood(y, value), protocol.reports())


def drawn_fit(protocol, value, people):
    """The p-value of the vectorised reports of people with one value."""
    rows = protocol.clients([value] * people, SYSTEM)
    found, counts = np.unique(rows, axis=0, return_counts=True)
    seen = {y if np.ndim(y) == 0 else tuple(y): n for y, n in zip(found.tolist(), counts, strict=True)}
    known = list(protocol.reports())
    if not set(seen) <= set(map(plain, known)):
        return 0.0
    chances = [float(protocol.likelihood(y, value)) for y in known]
    return p_value([seen.get(plain(y), 0) for y in known], chances)


def plain(report):
    return tuple(report) if isinstance(report, tuple) else int(report)


def ends(protocol):
    values = list(protocol.values())
    return values[0], values[-1]


@pytest.mark.parametrize("protocol", one_of_each([e for e in EXAMPLES if len(list(e.reports())) < 130]))
def test_one_clients_coins_give_the_stated_law(protocol):
    for value in ends(protocol):
        assert tape_faults(protocol, value) == {}


@pytest.mark.parametrize("protocol", one_of_each(EXAMPLES))
def test_many_clients_follow_the_stated_law(protocol):
    for value in ends(protocol):
        assert drawn_fit(protocol, value, 40_000) > ALPHA  # fails with p < 1e-12


@pytest.mark.slow
@every_example
def test_clients_with_different_values_do_not_mix(protocol):
    values = ends(protocol)
    rows = protocol.clients([values[i % 2] for i in range(40_000)], SYSTEM)
    for i, value in enumerate(values):
        half = Twin(protocol, clients=lambda _, __, i=i: rows[i::2])
        assert drawn_fit(half, value, 20_000) > ALPHA  # fails with p < 1e-12


@pytest.mark.slow
@every_oracle
def test_error_bars_hold(protocol):
    rounds, people, level = 400, 60, 0.8
    values = list(protocol.values())
    given = [values[i * i % len(values)] for i in range(people)]
    if isinstance(values[0], tuple):
        truth = np.mean(given, axis=0)
    else:
        truth = np.bincount(given, minlength=protocol.domain) / people
    held = np.zeros(protocol.domain, int)
    for _ in range(rounds):
        low, high = protocol.estimate(protocol.clients(given)).interval(level)
        held += (low <= truth) & (truth <= high)
    assert (held >= fewest(rounds, level)).all()  # fails with p < 1e-12 for each share


# Collectors


@every_example
def test_aggregates_add_up_in_any_order(protocol):
    values = list(protocol.values())
    rows = protocol.clients([values[i % len(values)] for i in range(50)])
    together = protocol.empty().add(rows)
    parts = [protocol.empty().add(rows[start::7]) for start in range(7)]
    for order in (parts, parts[::-1], parts[3:] + parts[:3]):
        merged = sum(order[1:], order[0])
        assert merged.people == 50
        assert np.array_equal(merged.counts, together.counts)
    one_by_one = protocol.empty()
    for row in rows:
        one_by_one.add(row[None])
    assert np.array_equal(one_by_one.counts, together.counts)
    assert protocol.empty().add(rows[:0]).people == protocol.empty().add(protocol.clients([])).people == 0


@every_oracle
def test_consistent_shares_are_possible(protocol):
    values = list(protocol.values())
    found = protocol.estimate(protocol.clients(values[:1] * 20))
    shares = found.consistent()
    assert (shares >= 0).all()
    assert (shares <= 1 + 1e-12).all()
    if not isinstance(values[0], tuple):
        assert shares.sum() == pytest.approx(1)
    assert (found.variance() > 0).all()
    assert np.array_equal(protocol.estimate(found.aggregate).shares, found.shares)
    assert np.allclose(found.counts, 20 * found.shares)


@every_example
def test_one_report_looks_like_a_row(protocol):
    known = set(map(plain, protocol.reports()))
    for value in list(protocol.values())[:3]:
        assert plain(protocol.client(value)) in known
        assert plain(next(map(_from_row, protocol.clients([value])))) in known
    assert max(map(_size, known)) <= protocol.bits + 8


def _from_row(row):
    return int(row) if np.ndim(row) == 0 else tuple(row.tolist())


def _size(report):
    return report.bit_length() if isinstance(report, int) else 0


# Bad input


def bad_values(protocol):
    last = list(protocol.values())[-1]
    if isinstance(last, tuple):
        yield from ([(*last, 0)], [[2] * len(last)])
    else:
        yield from ([last + 1], ["a"], *([[-1], [0.5]] if isinstance(last, int) else [[float("nan")], [None]]))


@every_example
def test_bad_values_are_refused_in_one_sentence(protocol):
    for values in bad_values(protocol):
        for call in (lambda v=values: protocol.clients(v), lambda v=values: protocol.client(v[0])):
            with pytest.raises(InputError, match=r"^[A-Za-z][^.]*(?:\d\.\d)?[^.]*\.$"):
                call()


@every_example
def test_reports_of_another_protocol_are_refused(protocol):
    foreign = {
        "words": np.array(["a", "b"]), "floats": np.array([[0.5, 0.25]]), "negative": np.array([-1, 0]),
        "too large": np.array([2**40]), "too wide": np.zeros((2, 40), np.int64), "cube": np.zeros((2, 2, 2), np.int64),
    }  # fmt: skip
    for name, reports in foreign.items():
        aggregate = protocol.empty()
        with pytest.raises(InputError, match="These are not reports of this"):
            aggregate.add(reports)
        assert (aggregate.people, aggregate.counts.sum()) == (0, 0), name


@every_example
def test_aggregates_of_another_protocol_are_refused(protocol):
    other = next(e for e in EXAMPLES if type(e) is not type(protocol))
    with pytest.raises(InputError, match="Only aggregates of the same protocol"):
        protocol.empty() + other.empty()
    with pytest.raises(InputError, match="These are the counts of another protocol"):
        protocol.estimate(other.empty())
    with pytest.raises(InputError, match="There are no reports yet"):
        protocol.estimate(protocol.empty())


# Broken twins


def louder(protocol):
    """The same protocol with another epsilon, if it has one of its own."""
    if "epsilon" in protocol.__dataclass_fields__:
        return replace(protocol, epsilon=protocol.epsilon + Fraction(1, 2))
    return replace(protocol, q=(1 + protocol.q) / 2)


def same_shape(protocol):
    return list(louder(protocol).reports()) == list(protocol.reports())


CASES = list({type(e): e for e in reversed(ORACLES) if same_shape(e)}.values())
every_kind = pytest.mark.parametrize("protocol", CASES, ids=named)


def test_every_kind_has_a_louder_twin_of_its_shape():
    assert {type(e) for e in CASES} == {type(e) for e in ORACLES}


@pytest.mark.slow_after(3)
@every_kind
def test_too_modest_and_too_bold_claims_are_convicted(protocol):
    guarantee = protocol.guarantee()
    modest = Twin(protocol, guarantee=lambda: Pure(guarantee.epsilon * Fraction(999, 1000)))
    bold = Twin(protocol, guarantee=lambda: Pure(guarantee.epsilon * Fraction(1001, 1000)))
    assert privacy_faults(modest) == ["not private"]
    assert privacy_faults(bold) == ["not tight"]
    likely = Twin(protocol, likelihood=lambda y, v: protocol.likelihood(y, v) * Fraction(11, 10))
    assert law_faults(likely)


@pytest.mark.slow_after(3)
@every_kind
def test_bias_and_boasts_are_convicted(protocol):
    def stretched(reports):
        found = protocol.estimate(reports)
        return replace(found, shares=found.shares * 1.01)

    assert "biased" in moment_faults(Twin(protocol, estimate=stretched))
    assert set(moment_faults(Twin(protocol, spread=lambda shares: protocol.spread(shares) * 0.99))) == {"variance"}


@pytest.mark.slow
@every_kind
def test_louder_clients_are_convicted(protocol):
    loud, (value, _) = louder(protocol), ends(protocol)
    twin = Twin(protocol, client=loud.client, clients=loud.clients)
    assert tape_faults(twin, value)
    assert drawn_fit(twin, value, 40_000) < ALPHA  # typical values are below 1e-60


def test_every_protocol_of_the_package_has_examples():
    shown = Counter(type(e).__name__ for e in EXAMPLES)
    protocols = {"GRR", "SUE", "OUE", "OLH", "HadamardResponse", "SubsetSelection", "AffineSubsets", "Rappor"}
    assert {*protocols, "ProjectiveGeometry", "SplitQueries"} <= set(shown)
