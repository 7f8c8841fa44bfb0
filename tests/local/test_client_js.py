"""The client in JavaScript writes the bytes that ours writes on the same coins, and keeps the law on its own."""

import base64
import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.goodness import ALPHA, p_value

from noisette import local
from noisette.exact.random import SystemRandom
from noisette.local.collector import Collector
from noisette.local.wire import Round

NODE = shutil.which("node")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(NODE is None, reason="node is not installed, so JavaScript cannot run"),
]
CLIENT = Path(local.__file__).with_name("client.js")
PROTOCOLS = [
    local.GRR(1, domain=2),
    local.GRR("7/3", domain=5),
    local.OUE("1/2", domain=11),
    local.SUE(3, domain=8),
    local.OLH(1, domain=1000),
    local.OLH("5/2", domain=4_000_000_000),
    local.AffineSubsets(1, domain=100),
    local.HadamardResponse(1, domain=100),
    local.HadamardResponse(3, domain=9, blocks=None),
    local.SubsetSelection(1, domain=20),
    local.ProjectiveGeometry(1, domain=5),
    local.ProjectiveGeometry("21/10", domain=1000),
    local.ProjectiveGeometry("3/2", domain=31),
    local.Rappor(f="1/2", p="1/2", q="3/4", domain=4, length=7, hashes=2),
    local.Rappor(f="1/3", p="2/5", q="3/4", domain=40, length=64, hashes=5),
    local.SplitQueries(1, queries=1),
    local.SplitQueries("5/2", queries=9),
    local.Duchi(1, low="-1/3", high=10),
    local.Piecewise("3/2", low=-1, high="0.7", steps=6),
    local.Piecewise(4),
    local.Hybrid(2, low=-2, high=1, steps=5),
    local.Hybrid("1/2", low=0, high=100),
    local.SquareWave(1, low=0, high=100),
    local.SquareWave("7/2", low=-2, high=4, buckets=9),
    local.PlanarLaplace("0.1", step=10, reach=1000),
    local.PlanarLaplace("1/300", step="0.25", reach=10_000),
    local.PlanarLaplace(2, step=3, reach=50),
]


def value_of(protocol, lots):
    """A value that a person can have, as JSON has it."""
    if isinstance(protocol, local.SplitQueries):
        return lots.integers(0, 2, protocol.queries).tolist()
    if isinstance(protocol, local.PlanarLaplace):
        near = lots.choice([0.5, 1.5, 2.5, 0.1], 2) * float(protocol.step)  # halves of a step, too
        return (near * lots.choice([-1, 1], 2)).tolist() if lots.integers(2) else (lots.uniform(-50, 50, 2)).tolist()
    if hasattr(protocol, "low"):
        low, high = float(protocol.low), float(protocol.high)
        return float(lots.choice([low, high, (low + high) / 2, lots.uniform(low, high)]))
    return int(lots.integers(0, protocol.domain))


RUN = """
import {{ Coins, asLine, record }} from {client};
import {{ readFileSync }} from "node:fs";
for (const [round, value, hex, times] of JSON.parse(readFileSync(0))) {{
  let at = 0;
  const tape = hex === null ? null : Buffer.from(hex, "hex");
  const draw = (n) => {{
    if (at + n > tape.length) throw new Error("no coins left");
    return Uint8Array.from(tape.subarray(at, (at += n)));
  }};
  for (let i = 0; i < times; i++) console.log(asLine(record(round, value, tape ? new Coins(draw) : new Coins())));
}}
"""


def ran(*jobs, client=CLIENT):
    """What the client writes for (round, value, coins, times)."""
    program = RUN.format(client=json.dumps(client.as_uri()))
    said = json.dumps([(json.loads(survey.to_json()), value, tape, times) for survey, value, tape, times in jobs])
    command = [NODE, "--input-type=module", "-e", program]
    return subprocess.run(command, input=said, capture_output=True, text=True, timeout=120, check=False)


def lines(*jobs):
    found = ran(*jobs)
    assert found.returncode == 0, found.stderr
    return [base64.b64decode(line) for line in found.stdout.split()]


class Tape(SystemRandom):
    """Coins from fixed bytes."""

    secure = False

    def __init__(self, data):
        self.data, self.at = data, 0

    def _take(self, count):
        assert self.at + count <= len(self.data)
        self.at += count
        return self.data[self.at - count : self.at]

    def bits(self, count):
        size = (count + 7) >> 3
        return int.from_bytes(self._take(size), "little") >> (8 * size - count)

    def words(self, count, dtype):
        return np.frombuffer(self._take(count * np.dtype(dtype).itemsize), dtype)


def same_coins():
    """Jobs with fixed coins, and the records that our own client makes of them."""
    jobs, expected = [], []
    draws = np.random.default_rng(7)
    for number, protocol in enumerate(PROTOCOLS):
        survey = Round(protocol, number=number)
        for _ in range(25):
            value, data = value_of(protocol, draws), draws.bytes(20_000)
            tape = Tape(data)
            report = protocol.client(value, tape)
            expected.append(survey.encode([report], tape))
            jobs.append((survey, value, data[: tape.at].hex(), 1))  # not one coin more
    return jobs, expected


def test_the_same_coins_give_the_same_bytes():
    jobs, expected = same_coins()
    assert lines(*jobs) == expected


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("denominator * k)", "denominator + k)"),
        ("k % 2n === 1n", "k % 2n === 0n"),
        ("value < n)", "value <= n)"),
        ("(other >= own ? 1n : 0n)", "0n"),
        ("() => coins.flip(1n, 2n)", "() => coins.flip(2n, 3n)"),
        ("reduced(epsilon[0], 2n * epsilon[1])", "reduced(epsilon[0], epsilon[1])"),
        ("(chosen.has(drawn) ? last : drawn)", "(drawn)"),
        ("even !== plus", "even === plus"),
        ("0xedb88320", "0xedb88321"),
        ("turn(e, 6, 11, 25)", "turn(e, 6, 11, 26)"),
        ("reduced(f[0], 2n * f[1])", "reduced(f[0], f[1])"),
        ("? q : p)", "? p : q)"),
        ("(answers[Number(query)] === 1) ===", "(answers[0] === 1) ==="),
        ("? 0n : 1n;\n    let drawn", "? 0n : 2n;\n    let drawn"),
        ("((x * inverse) % r)", "(x % r)"),
        ("(drawn >= start ? width : 0n)", "(drawn > start ? width : 0n)"),
        ("coins.flip(at % FINE, FINE)", "coins.flip(0n, FINE)"),
        ("rest === 0.5 && odd", "rest === 0.5"),
        ("const far = 7n", "const far = 6n"),
        ("if (z) return -z", "return -z"),
    ],
)
def test_a_broken_client_is_convicted(right, wrong, tmp_path):
    text = CLIENT.read_text(encoding="utf-8")
    assert text.count(right) == 1
    broken = tmp_path / "client.mjs"
    broken.write_text(text.replace(right, wrong), encoding="utf-8")
    jobs, expected = same_coins()
    found = ran(*jobs, client=broken)
    assert found.returncode or [base64.b64decode(line) for line in found.stdout.split()] != expected


SMALL = {
    type(p): p for p in PROTOCOLS if hasattr(p, "likelihood") and p.bits < 12 and len(list(p.reports())) < 200
}  # one of each kind


@pytest.mark.parametrize("protocol", SMALL.values(), ids=lambda p: type(p).__name__)
def test_its_own_coins_follow_the_law(protocol):
    """A false alarm has a probability of ALPHA."""
    survey, value, times = Round(protocol), list(protocol.values())[-1], 2000
    records = lines((survey, list(map(int, value)) if isinstance(value, tuple) else float(value), None, times))
    collector = Collector(survey)
    collector.add(b"".join(records))
    found = collector.result()
    assert (found.aggregate.people, any(found.rejected.values())) == (times, False)
    drawn = Counter(survey.decode(record)[0] for record in records)
    known = [(drawn[report], float(protocol.likelihood(report, value))) for report in protocol.reports()]
    assert sum(n for n, _ in known) == times
    assert p_value(*zip(*known, strict=True)) > ALPHA


def test_rappor_keeps_its_permanent_noise():
    """With f small and q near 1, all reports of what was kept are alike, and the fresh ones are not."""
    protocol = local.Rappor(f="1/2", p="1/1000000000000", q="999999999999/1000000000000", domain=4, length=32, hashes=2)
    survey = Round(protocol)
    program = f"""
import {{ asLine, instantaneous, permanent }} from {json.dumps(CLIENT.as_uri())};
const round = {survey.to_json()};
const kept = permanent(round, 3);
console.log(kept);
for (let i = 0; i < 20; i++) console.log(asLine(instantaneous(round, kept)));
"""
    command = [NODE, "--input-type=module", "-e", program]
    kept, *sent = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout.split()
    reports = {survey.decode(base64.b64decode(line))[0] for line in sent}
    assert reports == {tuple(int(kept, 16).to_bytes(4, "little"))}  # fails with a probability below 1e-9


@pytest.mark.parametrize("value", [-1, 3, 0.5, "canaryqx", None])
def test_values_outside_the_domain_are_refused(value):
    found = ran((Round(local.GRR(1, domain=3)), value, None, 1))
    assert found.returncode != 0
    assert "outside the domain" in found.stderr
    assert "canaryqx" not in found.stderr


@pytest.mark.parametrize(
    ("protocol", "values"),
    [
        (local.Duchi(1, low=0, high=10), [-0.1, 10.5, "5"]),
        (local.SplitQueries(1, queries=2), [1, [1], [0, 2]]),
        (local.PlanarLaplace("0.1", step=1, reach=100), [5, [101, 0], [0, None]]),
    ],
    ids=["mean", "queries", "place"],
)
def test_other_values_outside_the_domain_are_refused(protocol, values):
    for value in values:
        assert "outside the domain" in ran((Round(protocol), value, None, 1)).stderr


def test_protocols_that_it_does_not_have_are_refused():
    found = ran((Round(local.PrivUnitG(1, dimension=3)), [0, 0, 1], None, 1))
    assert "does not have" in found.stderr


def test_it_has_no_floats_and_no_other_coins():
    text = CLIENT.read_text(encoding="utf-8")
    code = "\n".join(line for line in text.splitlines() if not line.startswith("//"))
    assert "Math." not in code
    assert "import " not in code
