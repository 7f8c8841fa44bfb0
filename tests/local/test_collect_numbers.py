"""Means, vectors, distributions and places on the wire: what is collected is what the reports say, in any order."""

import itertools
import json
import math

import numpy as np
import pytest
from tests.goodness import fewest
from tests.local import test_collector as plain
from tests.local.test_collector import resealed, saved

from noisette import local
from noisette.errors import InputError, PrivacyError
from noisette.local import planar_laplace
from noisette.local.wire import Round, as_lines

PROTOCOLS = [
    local.Duchi(1, low=0, high=10),
    local.Piecewise("3/2", low=0, high=10, steps=6),
    local.Hybrid(2, low=0, high=10, steps=5),
    local.Hybrid("1/2", low=0, high=10),
    local.SquareWave(1, low=0, high=10, buckets=9),
    local.PrivUnitG(2, dimension=2, norm=10, candidates=6, seed_bits=3),
    local.PlanarLaplace("0.1", step=5, reach=1000),
]
every = pytest.mark.parametrize("survey", [Round(p, number=7) for p in PROTOCOLS], ids=lambda s: s.fingerprint.hex())


def values(survey, count):
    numbers = np.arange(count) % 11
    wide = isinstance(survey.protocol, local.PrivUnitG | local.PlanarLaplace)
    return np.stack([numbers, -numbers], axis=1) / 2 if wide else numbers[numbers <= 10]


def reports(survey, count):
    return survey.protocol.clients(values(survey, count))


def collected(survey, *inputs, batch=None):
    return plain.collected(*inputs, survey=survey, batch=batch)


def each(survey, data):
    return plain.each(data, survey.record_bytes)


def counts(survey, *inputs):
    return plain.rejected(*inputs, survey=survey)


@pytest.mark.slow_after(4)
@every
@pytest.mark.parametrize("form", ["records", "lines"])
def test_what_is_collected_is_what_the_reports_say(survey, form):
    rows = reports(survey, 300)
    data = survey.encode(rows)
    data = data if form == "records" else as_lines(data, survey.record_bytes).encode()
    found = collected(survey, data, batch=64).result()
    expected = survey.protocol.empty().add(rows)
    assert (found.aggregate.people, found.aggregate.counts.tolist()) == (len(rows), expected.counts.tolist())
    assert found.aggregate.counts.size == survey.protocol.cells  # whatever the number of people
    assert not any(found.rejected.values())
    table = found.rows(0.9)
    assert all(row["low"] <= row["high"] for row in table)
    if not isinstance(survey.protocol, local.SquareWave):  # its bars are simulated
        assert table == survey.protocol.estimate(rows).rows(0.9)


@every
def test_rounds_and_reports_come_back(survey):
    assert Round.from_json(survey.to_json()) == survey
    rows = reports(survey, 50)
    back = np.array(survey.decode(survey.encode(rows)))
    assert (back == rows).all()
    one = survey.protocol.client(values(survey, 2)[1])
    assert survey.decode(survey.encode([one])) == [one]
    assert survey.report_bytes <= -(-survey.protocol.bits // 8)


@every
def test_partial_aggregates_merge_in_any_order(survey):
    pieces = each(survey, survey.encode(reports(survey, 12)))
    groups = [pieces[:3] + pieces[:1], pieces[3:5], [*pieces[5:], b"junk"]]
    partials = [saved(collected(survey, b"".join(group), batch=2)) for group in groups]
    merged = [collected(survey, *order) for order in itertools.permutations(partials)]
    assert len({saved(one) for one in merged}) == 1
    whole = collected(survey, *(b"".join(group) for group in groups)).result()
    for one in merged:
        assert (one.result().aggregate.counts == whole.aggregate.counts).all()
        assert (one.result().rejected, one.result().repeated) == (whole.rejected, whole.repeated)


@every
def test_equal_ids_count_once_and_conflicting_ones_never(survey):
    one, two, three = each(survey, survey.encode(reports(survey, 3)))
    assert counts(survey, one + two + one, two) == (2, 2, {})
    other = survey.encode([survey.decode(two)[0]])
    while survey.decode(other) == survey.decode(one):
        other = survey.encode(reports(survey, 1))
    clash = resealed(other[:11] + one[11:27] + other[27:])
    assert counts(survey, one + clash + three) == (1, 0, {"conflicting": 1})


@every
def test_reports_of_every_other_round_are_foreign(survey):
    others = [Round(p, number=7) for p in PROTOCOLS if p != survey.protocol] + [Round(survey.protocol, number=8)]
    foreign = b"".join(other.encode(reports(other, 2)) for other in others)
    mine = survey.encode(reports(survey, 4))
    assert counts(survey, mine + foreign) == (4, 0, {"foreign": 2 * len(others)})
    version = resealed(b"\xd2" + mine[1 : survey.record_bytes])
    assert counts(survey, version) == (0, 0, {"foreign": 1})


@pytest.mark.parametrize("protocol", PROTOCOLS[:3] + PROTOCOLS[4:6], ids=lambda p: type(p).__name__)
def test_no_other_report_is_possible(protocol):
    survey = Round(protocol)
    known = list(protocol.reports())
    assert survey.decode(survey.encode(known)) == known
    everything = np.arange(256**survey.report_bytes, dtype="<u4").view(np.uint8).reshape(-1, 4)
    rows = np.ascontiguousarray(everything[:, : survey.report_bytes])
    assert survey.possible(rows).sum() == len(known)
    wrong = rows[~survey.possible(rows)][:3]
    head = survey.encode(known[:1])
    records = b"".join(resealed(head[:26] + bytes([i]) + row.tobytes() + head[-4:]) for i, row in enumerate(wrong))
    assert counts(survey, records + head) == (1, 0, {"out of domain": len(wrong)} if len(wrong) else {})


@every
def test_damage_does_not_bias(survey):
    """Every third record is damaged within its report: the aggregate is exactly that of the others."""
    rows = reports(survey, 300)
    data = np.frombuffer(survey.encode(rows), np.uint8).reshape(len(rows), -1).copy()
    hit = np.arange(len(rows)) % 3 == 0
    data[hit, 27] ^= 1
    found = collected(survey, data.tobytes()).result()
    assert (found.aggregate.counts == survey.protocol.counted(rows[~hit])).all()
    assert found.rejected["malformed"] == hit.sum()


def test_the_json_has_what_other_clients_cannot_compute():
    assert json.loads(Round(local.Hybrid(2, steps=5)).to_json())["derived"] == {"lots": 662_826}
    assert json.loads(Round(local.ProjectiveGeometry(1, domain=30)).to_json())["derived"] == {"prime": 3}
    assert "derived" not in json.loads(Round(local.Duchi(1)).to_json())


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: Round(local.Duchi(1), values=("a", "b")), "does not have"),
        (lambda: Round(local.PrefixTree(1, length=8)), "protocol must be one of"),
        (lambda: Round(local.Duchi(1)).encode([2]), "These are not reports"),
        (lambda: Round(local.Piecewise(1)).encode([0.5]), "These are not reports"),
        (lambda: Round(PROTOCOLS[-1]).encode([[10**6, 0]]), "These are not reports"),
        (lambda: Round(PROTOCOLS[-1]).encode([1, 2]), "These are not reports"),
        (lambda: Round.from_json(Round(local.Hybrid(2)).to_json().replace("662826", "1")), "was changed"),
        (lambda: local.PlanarLaplace(1, step=1, reach="1/2"), "reach must be at least one step"),
        (lambda: local.PlanarLaplace(1, step=1, reach=10**9), "at most 1e8"),
        (lambda: local.PlanarLaplace(1, step="0.01"), "at most 2\\^32 steps"),
        (lambda: PROTOCOLS[-1].client((1001, 0)), "beyond the reach"),
        (lambda: PROTOCOLS[-1].client((math.inf, 0)), "beyond the reach"),
        (lambda: PROTOCOLS[-1].estimate(np.zeros((0, 2), int)), "no reports yet"),
    ],
)
def test_bad_input_gets_one_sentence(wrong, sentence):
    with pytest.raises(InputError, match=sentence):
        wrong()


# The mean place


def moments(rate, tilts):
    """ln E e^(s a) for each s = tilt * rate, and the variance of a coordinate, by summing over the lattice."""
    size = math.ceil(45 / rate) + 40
    a = np.arange(-size, size + 1)
    weight = np.exp(-rate * np.hypot(a[:, None], a))
    marginal = weight.sum(axis=0) / weight.sum()
    return [math.log(float(marginal @ np.exp(t * rate * a))) for t in tilts], float(marginal @ a**2)


@pytest.mark.parametrize("rate", [0.1, 0.3, 1.0, 2.0, 5.0])
def test_the_lattice_has_smaller_moments_than_the_plane(rate):
    """Every step from the tail bound of the docstring to the lattice; the same law with 4/5 of the noise fails it."""
    tilts = [0.05, 0.3, 0.6, 0.8]
    found, variance = moments(rate, tilts)
    bound = [-1.5 * math.log(1 - t * t) for t in tilts]
    assert all(x <= y for x, y in zip(found, bound, strict=True))
    assert variance <= 3 / rate**2
    if rate <= 0.3:  # the bounds are tight on a fine lattice
        assert variance > 0.99 * 3 / rate**2
        assert not all(x <= 0.95 * y for x, y in zip(found, bound, strict=True))


@pytest.mark.slow
def test_bars_of_the_mean_place_hold():
    """A false alarm has a probability below 1e-12."""
    protocol, rounds, level = local.PlanarLaplace("0.1", step=8, reach=1000), 300, 0.8
    places = np.stack([np.linspace(-300, 200, 40), np.linspace(7, 9, 40)], axis=1)
    held, errors = np.zeros(2, int), []
    for _ in range(rounds):
        found = protocol.estimate(protocol.clients(places))
        low, high = found.interval(level)
        held += (low <= places.mean(axis=0)) & (places.mean(axis=0) <= high)
        errors.append(found.mean - protocol.nearest(places).mean(axis=0) * 8)
    assert (held >= fewest(rounds, level)).all()
    spread = np.mean(np.square(errors))
    assert 0.7 < spread / protocol.variance(40) < 1.3  # 600 squares, whose mean has a standard deviation below 0.06


def test_bars_of_the_mean_place_cover_the_rounding():
    """All people are at 3.5 m and report from 0 m; noise alone would have a bar of 0.7 m. Fails with p < 1e-12."""
    protocol = local.PlanarLaplace("0.1", step=8, reach=1000)
    low, high = protocol.estimate(protocol.clients([(3.5, -3.5)] * 20_000)).interval(0.999999)
    assert (low <= [3.5, -3.5]).all()
    assert (high >= [3.5, -3.5]).all()
    t = float((high - low)[0]) / 2 - 4  # without half a step
    assert 2 * math.exp(-20_000 * t**2 / (2 * (300 + 10 * t))) == pytest.approx(1e-6)  # the tail bound of the docstring


def test_far_reports_are_moved_to_the_edge(monkeypatch):
    protocol = PROTOCOLS[-1]
    monkeypatch.setattr(planar_laplace, "attempt", lambda rate, rng: (10**9, -(10**9)))
    assert protocol.client((0, 0)) == (protocol.edge, -protocol.edge)
    assert protocol.edge == 360  # 1000 m and 80/epsilon, in steps of 5 m


def test_a_promise_per_metre_is_not_taken_for_an_epsilon():
    with pytest.raises(PrivacyError, match="no differential privacy"):
        local.Memo(PROTOCOLS[-1], most=3)
    with pytest.raises(PrivacyError, match="no differential privacy"):
        local.shuffled(PROTOCOLS[-1], people=1000, delta="1e-6")
