"""Few draws per call: one or a thousand; warm (the same scale again) or cold (a scale not seen before)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, product

from benchmarks.harness import OURS, Bench, Check, Job, Section, Table, duration, times
from benchmarks.peers import Draw, Peer
from noisette.exact import vector

ASKED = ("OpenDP", "PyDP")  # diffprivlib needs up to seconds to set up a Gaussian
FRESH: Iterator[int] = count(1)  # every cold call takes the next one: no table can have been built before
NOTE = "× = how many times faster Noisette is. Cold: the first call with this scale builds what it needs."


@dataclass(frozen=True)
class Law:
    """A law as Noisette and as a peer draw it, by scale."""

    name: str
    scale: float
    ours: Callable[[float], Draw]
    peer: Callable[[Peer], Callable[[float], Draw]]


def _laplace(scale: float) -> Draw:
    return lambda n: vector.discrete_laplace(scale, None if n == 1 else n)


def _gaussian(sigma: float) -> Draw:
    return lambda n: vector.discrete_gaussian(sigma * sigma, None if n == 1 else n)


LAWS = [
    Law("Laplace 10", 10, _laplace, lambda peer: peer.laplace),
    Law("Laplace 1000", 1000, _laplace, lambda peer: peer.laplace),
    Law("Gaussian 1000", 1000, _gaussian, lambda peer: peer.gaussian),
]


def warm(name: str, draw: Draw, size: int, calls: int) -> Job:
    """Call again and again with one scale, whose table is built before the clock runs."""
    draw(1000)

    def run() -> None:
        for _ in range(calls):
            draw(size)

    return Job(name, run, calls)


def cold(name: str, make: Callable[[float], Draw], scale: float, size: int, calls: int) -> Job:
    """Begin with a new scale at every call, near the given one."""

    def run() -> None:
        for _ in range(calls):
            make(scale + next(FRESH) / 4096)(size)

    return Job(name, run, calls)


def asked(bench: Bench) -> list[Peer]:
    """The peers that take part here."""
    return [peer for peer in bench.peers if peer.name in ASKED]


def jobs(bench: Bench, law: Law, size: int, *, fresh: bool) -> list[Job]:
    """One job for everybody, of some calls."""
    everybody = [(OURS, law.ours), *((peer.name, law.peer(peer)) for peer in asked(bench))]
    if fresh:
        calls = bench.pick(8, 2)
        return [cold(name, make, law.scale, size, calls) for name, make in everybody]
    calls = bench.pick(1000, 200) if size == 1 else bench.pick(20, 5)
    return [warm(name, make(law.scale), size, calls) for name, make in everybody]


def run(bench: Bench) -> Section:
    """Measure every law, state and size."""
    rows, checks = [], []
    for law, fresh, size in product(LAWS, (False, True), (1, 1000)):
        what = f"{law.name}, {size} draw{'s' * (size > 1)}, {'cold' if fresh else 'warm'}"
        ns = bench.measure(what, jobs(bench, law, size, fresh=fresh), rounds=bench.pick(7, 3))
        rows.append(row(bench, what, ns))
        checks += [Check(f"{what}, {name} / {OURS}", ns[name] / ns[OURS]) for name in ns if name != OURS]
    header = ["a call", OURS, *(peer.name for peer in asked(bench))]
    return Section([Table("One call", header, rows, NOTE)], checks)


def row(bench: Bench, what: str, ns: dict[str, float]) -> list[str]:
    """One line: our cost, and each peer's with the ratio."""
    theirs = [ns.get(peer.name) for peer in asked(bench)]
    cells = ["fails" if cost is None else f"{duration(cost)} = {times(cost / ns[OURS])}" for cost in theirs]
    return [what, duration(ns[OURS]), *cells]
