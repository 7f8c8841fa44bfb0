"""A million draws of integer noise: against NumPy's generator, the bare keystream and hardened peers."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from benchmarks.harness import NUMPY, OURS, Bench, Check, Job, Section, Table, duration, times
from benchmarks.peers import Draw, Peer, paced
from noisette.exact import vector

FASTER_THAN_PEERS = 250
KEYSTREAM_BLOCK = bytes(1 << 20)


@dataclass(frozen=True)
class Case:
    """A law with a scale; `most` is the target against NumPy, `least` the one against the fastest peer."""

    what: str
    ours: Draw
    numpy: Draw
    peer: Callable[[Peer], Draw]
    most: float | None
    least: float | None = FASTER_THAN_PEERS


def laplace(scale: int, most: float | None, least: float | None = FASTER_THAN_PEERS) -> Case:
    """The discrete Laplace law of one scale."""
    rng = np.random.default_rng()
    return Case(
        f"Laplace {power(scale)}",
        lambda size: vector.discrete_laplace(scale, size),
        lambda size: rng.laplace(0.0, scale, size),
        lambda peer: peer.laplace(scale),
        most,
        least,
    )


def gaussian(sigma: int, most: float | None, least: float | None = FASTER_THAN_PEERS) -> Case:
    """The discrete Gaussian law of one sigma."""
    rng = np.random.default_rng()
    return Case(
        f"Gaussian {power(sigma)}",
        lambda size: vector.discrete_gaussian(sigma * sigma, size),
        lambda size: rng.normal(0.0, sigma, size),
        lambda peer: peer.gaussian(sigma),
        most,
        least,
    )


def power(n: int) -> str:
    """Write a large power of two as one.

    >>> power(1000), power(2**40)
    ('1000', '2^40')
    """
    exponent = n.bit_length() - 1
    return f"2^{exponent}" if exponent >= 16 and n == 1 << exponent else str(n)


def cases() -> list[Case]:
    """What is measured, with its targets."""
    return [
        *(laplace(scale, 0.8) for scale in (1, 10, 1000)),
        laplace(1 << 40, 3.0, None),
        *(gaussian(sigma, 1.0) for sigma in (1, 10, 1000)),
        gaussian(1 << 20, None, None),
    ]


def keystream(words: int) -> Job:
    """The floor: AES-256-CTR over zeros, for each 64-bit word."""
    encrypt = Cipher(algorithms.AES(bytes(32)), modes.CTR(bytes(16))).encryptor().update
    blocks = max(1, 8 * words // len(KEYSTREAM_BLOCK))

    def run() -> None:
        for _ in range(blocks):
            encrypt(KEYSTREAM_BLOCK)

    return Job("keystream", run, blocks * len(KEYSTREAM_BLOCK) // 8)


def jobs(bench: Bench, case: Case) -> list[Job]:
    """Everybody who can draw from this law; a peer draws as often as takes some milliseconds."""
    size = bench.pick(1_000_000, 200_000)
    everybody = [
        Job(OURS, partial(case.ours, size), size),
        Job(NUMPY, partial(case.numpy, size), size),
        keystream(size),
    ]
    for peer in bench.peers:
        try:
            draw = case.peer(peer)
            count = paced(draw, seconds=bench.pick(30, 10) / 1000, most=size)
            everybody.append(Job(peer.name, partial(draw, count), count))
        except Exception as error:
            bench.failed(case.what, peer.name, error)
    return everybody


def run(bench: Bench) -> Section:
    """Measure every case."""
    rows, peer_rows, checks = [], [], []
    for case in cases():
        ns = bench.measure(case.what, jobs(bench, case), rounds=bench.pick(9, 3))
        check = Check(f"{case.what}, cost against NumPy", ns[OURS] / ns[NUMPY], at_most=case.most)
        costs = [duration(ns[name]) for name in (OURS, "keystream", NUMPY)]
        rows.append([case.what, *costs, *check.cells])
        checks.append(check)
        found, row = against_peers(bench, case, ns)
        peer_rows.append(row)
        checks += found
    tables = [against_numpy(rows)]
    return Section([*tables, peer_table(bench, peer_rows)] if bench.peers else tables, checks)


def against_peers(bench: Bench, case: Case, ns: dict[str, float]) -> tuple[list[Check], list[str]]:
    """Compare with the fastest peer."""
    cells = [_cost_and_ratio(ns.get(peer.name), ns[OURS]) for peer in bench.peers]
    ratios = [ns[peer.name] / ns[OURS] for peer in bench.peers if peer.name in ns]
    if not ratios:
        return [], [case.what, duration(ns[OURS]), *cells, "", "", ""]
    check = Check(f"{case.what}, times faster than the fastest peer", min(ratios), at_least=case.least)
    return [check], [case.what, duration(ns[OURS]), *cells, *check.cells]


def _cost_and_ratio(theirs: float | None, ours: float) -> str:
    return "fails" if theirs is None else f"{duration(theirs)} = {times(theirs / ours)}"


def against_numpy(rows: list[list[str]]) -> Table:
    """The table against NumPy."""
    header = ["a draw", OURS, "AES-CTR, 8 bytes", "NumPy float", "cost / NumPy", "target", ""]
    return Table("Integer noise against NumPy's floats (neither exact nor secure)", header, rows)


def peer_table(bench: Bench, rows: list[list[str]]) -> Table:
    """The table against hardened peers."""
    names = [f"{peer.name} {peer.version}" for peer in bench.peers]
    header = ["a draw", OURS, *names, "× faster than best", "target", ""]
    return Table("Integer noise against hardened peers, each at its own pace", header, rows)
