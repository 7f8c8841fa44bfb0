"""Bad input by hand, for each family of protocols: one clear sentence, before anything is drawn or counted."""

import io
import math

import numpy as np
import pytest

from noisette import local
from noisette.errors import InputError, PrivacyError
from noisette.local.collector import Collector
from noisette.local.wire import Round

CANARY = "canaryqx"
ORACLES = [local.GRR, local.OUE, local.SUE, local.OLH, local.AffineSubsets, local.SubsetSelection,
           local.HadamardResponse, local.ProjectiveGeometry]  # fmt: skip
NUMBERS = [local.Duchi, local.Piecewise, local.Hybrid, local.SquareWave]
OTHERS = [local.SplitQueries(1, queries=3), local.PrivUnitG(1, dimension=2, candidates=8),
          local.PlanarLaplace(1, step=1, reach=100), local.PrefixTree(1, length=8)]  # fmt: skip
EVERY = [*(kind(1, domain=3) for kind in ORACLES), *(kind(1) for kind in NUMBERS), *OTHERS]
SURVEY = Round(local.GRR(1, domain=3))
every = pytest.mark.parametrize("protocol", EVERY, ids=lambda p: type(p).__name__)


def refused(call, kind=InputError):
    """The sentence with which a call is refused."""
    with pytest.raises(kind) as found:
        call()
    text = str(found.value)
    assert text.endswith(".")
    assert ". " not in text
    assert CANARY not in text
    return text


@every
def test_values_that_nobody_can_have(protocol):
    for value in (None, CANARY, {}, 10**400, math.nan, [[1, 2], [3]]):
        refused(lambda v=value: protocol.client(v))
        refused(lambda v=value: protocol.clients([v]))
    for values in (None, 3, CANARY, [[1, 2], [3]], [[[1]]]):
        refused(lambda v=values: protocol.clients(v))


@every
def test_reports_that_no_client_makes(protocol):
    for reports in (None, 5, [CANARY], [[0.5]], [None], [[1, 2], [3]], [10**400], np.zeros((1, 1, 1), int)):
        aggregate = protocol.empty()
        assert "not reports of this" in refused(lambda r=reports, a=aggregate: a.add(r))
        assert aggregate.people == 0
    assert "no reports yet" in refused(lambda: protocol.estimate([]))


@pytest.mark.parametrize("kind", [*ORACLES, *NUMBERS], ids=lambda kind: kind.__name__)
def test_parameters(kind):
    given = {"domain": 3} if kind in ORACLES else {}
    for epsilon in (0, -1, CANARY, None, 101, math.inf, math.nan):
        assert "epsilon" in refused(lambda e=epsilon: kind(e, **given))
    if kind in ORACLES:
        for domain in (1, 0, 2.5, "3", None):
            assert "domain must be a whole number, at least 2" in refused(lambda d=domain: kind(1, domain=d))
    else:
        for low, high in ((1, 1), (2, 1), (0, 10**400), (0, "1e-400"), (math.nan, 1)):
            refused(lambda a=low, b=high: kind(1, low=a, high=b))


def test_partial_aggregates_cut_short():
    stream, collector = io.BytesIO(), Collector(SURVEY)
    collector.add(SURVEY.encode([1, 2]))
    collector.save(stream)
    for cut in (60, 200, 400, len(stream.getvalue()) - 1):
        other = Collector(SURVEY)
        refused(lambda c=cut, o=other: o.add(stream.getvalue()[:c]))
        assert other.result().aggregate.people == 0


@pytest.mark.parametrize(
    "text",
    [
        SURVEY.to_json()[:-5],
        SURVEY.to_json().replace('"version": 1', '"version": 2'),
        SURVEY.to_json().replace('"domain": 3', '"domain": 1'),
        SURVEY.to_json().replace('"domain": 3', f'"domain": 3, "{CANARY}": 1'),
        SURVEY.to_json().replace("GRR", CANARY),
        SURVEY.to_json().replace('"limits": [3]', '"limits": [4]'),
        "[" * 100_000,
        "null",
        b"\xff\xfe",
    ],
    ids=["cut", "version", "one value", "unknown field", "protocol", "limit", "nested", "null", "bytes"],
)
def test_rounds(text):
    refused(lambda: Round.from_json(text))


def test_text_in_place_of_bytes():
    for call in (lambda: SURVEY.decode(CANARY), lambda: Collector(SURVEY).add(CANARY)):
        assert "binary mode" in refused(call)
    assert "binary mode" in refused(lambda: Collector(SURVEY).read(io.StringIO(CANARY)))


def test_a_memory_takes_values_in_any_form_that_the_protocol_takes():
    phone = local.Memo(local.SplitQueries(1, queries=2), most=1)
    assert phone.client(np.array([0, 1])) == phone.client([0, 1]) == phone.client((0, 1))
    refused(lambda: phone.client({}))
    refused(lambda: phone.client([1, 1]))  # another value
    refused(lambda: local.Memo(CANARY, most=1), PrivacyError)
    refused(lambda: local.shuffled(CANARY, people=10, delta="1e-6"), PrivacyError)
