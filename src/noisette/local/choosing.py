"""Which frequency oracle for this domain and epsilon: the one with the least variance, and why.

Variances that differ by less than 0.1 % count as equal; the shortest report decides then."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from noisette.errors import InputError
from noisette.exact.number import Number, whole
from noisette.local.affine import LARGEST
from noisette.local.affine_subsets import AffineSubsets
from noisette.local.contract import LARGEST_AGGREGATE, epsilon_of
from noisette.local.frequencies import FrequencyOracle
from noisette.local.grr import GRR
from noisette.local.hadamard import HadamardResponse
from noisette.local.olh import OLH
from noisette.local.projective import ProjectiveGeometry
from noisette.local.subset import SubsetSelection
from noisette.local.unary import OUE, SUE
from noisette.text import aligned

__all__ = ["Candidate", "Choice", "choose", "compare"]

PLAIN = "HadamardResponse, plain"
_PLAIN_UP_TO = 1.5  # epsilon; above, one block has several times the variance of others
_MAKERS: dict[str, Any] = {
    "GRR": GRR,
    "SubsetSelection": SubsetSelection,
    "AffineSubsets": AffineSubsets,
    "ProjectiveGeometry": ProjectiveGeometry,
    "OLH": OLH,
    "OUE": OUE,
    "SUE": SUE,
    "HadamardResponse, blocked": lambda epsilon, domain: HadamardResponse(epsilon, domain=domain, blocks=None),
    PLAIN: HadamardResponse,
}  # where two have the same variance, the first is simpler or has shorter reports
_AFFINE = {"AffineSubsets", "OLH"}  # their collectors take k^2 steps for all shares
_EQUAL = 1.001
_SQUARES = 1 << 15  # values, for which these take some seconds


@dataclass(frozen=True)
class Candidate:
    """A protocol, n times the variance of a share near 0, and the length of a report in bits."""

    name: str
    protocol: FrequencyOracle
    variance: float
    bits: int


@dataclass(frozen=True)
class Choice:
    """The protocol to take, all candidates (it comes first, the others by variance), and a sentence that says why."""

    protocol: FrequencyOracle
    candidates: tuple[Candidate, ...]
    why: str

    def __str__(self) -> str:
        rows = [[c.name, f"{c.variance:.6g}", f"{c.bits:,}"] for c in self.candidates]
        return "\n".join([aligned(["protocol", "n × variance", "bits"], rows), self.why])


def _candidates(domain_size: int, given: Number) -> list[Candidate]:
    """All protocols whose collectors can estimate every share of this domain; OLH alone if there is none."""
    domain, epsilon, found = whole(domain_size, "domain_size", least=2), epsilon_of(given), []
    for name, maker in _MAKERS.items():
        try:
            protocol = maker(epsilon, domain=domain)
        except InputError:  # too large a domain for this one
            continue
        found.append(Candidate(name, protocol, protocol.variance(), protocol.bits))
    quick = [
        c for c in found if c.protocol.cells <= LARGEST_AGGREGATE and (c.name not in _AFFINE or domain <= _SQUARES)
    ]
    return quick or [c for c in found if c.name == "OLH"]


def choose(domain_size: int, epsilon: Number, bits: int | None = None) -> Choice:
    """Return the frequency oracle with the least variance among those whose reports have at most `bits` bits.

    The variance is that of the share of a rare value, n times; other shares have nearly the same. A plain Hadamard
    response is no candidate above epsilon = 1.5, where its variance is at least twice that of others. Above 2^15 values
    affine maps are none, since their collectors take k^2 steps, and above 2^26 only OLH is left, for lists of values.

    >>> print(choose(1000, 1, bits=32))
    protocol                   n × variance  bits
    AffineSubsets                   3.67342    20
    OLH                             3.68215    22
    ProjectiveGeometry              3.76113    11
    HadamardResponse, blocked       4.68269    10
    HadamardResponse, plain         4.68269    10
    GRR                              338.94    10
    AffineSubsets has the least variance of those with at most 32 bits, 3.673/n, against 3.682/n for OLH.
    """
    every, e = _candidates(domain_size, epsilon), epsilon_of(epsilon)
    most = None if bits is None else whole(bits, "bits")
    if not every:
        raise InputError(f"domain_size must be at most {LARGEST:,}: hash longer values to 32 bits first.")
    allowed = [c for c in every if (most is None or c.bits <= most) and (c.name != PLAIN or e <= _PLAIN_UP_TO)]
    if not allowed:
        raise InputError(f"No protocol has reports that short: allow at least {min(c.bits for c in every)} bits.")
    least = min(c.variance for c in allowed)
    best = min((c for c in allowed if c.variance <= least * _EQUAL), key=lambda c: c.bits)
    ranked = (best, *sorted((c for c in allowed if c is not best), key=lambda c: c.variance))
    return Choice(best.protocol, ranked, _why(ranked, most))


def _why(ranked: Sequence[Candidate], most: int | None) -> str:
    best, *others = ranked
    among = "all candidates" if most is None else f"those with at most {most:,} bits"
    start = f"{best.name} has the least variance of {among}, {best.variance:.4g}/n"
    if not others:
        return f"{start}."
    if others[0].variance <= best.variance * _EQUAL:
        return f"{start}, and shorter reports than {others[0].name}, which is as accurate."
    return f"{start}, against {others[0].variance:.4g}/n for {others[0].name}."


def compare(domain_sizes: Sequence[int], epsilons: Sequence[float]) -> dict[str, list[tuple[float, float]]]:
    """Return n times the variance of every candidate as lines for a chart: over epsilon, or over the domain's size.

    One of the two lists has one entry; the other is the x of the lines. Where a protocol is no candidate, its line has
    no number (nan), which charts draw as a gap.

    >>> [(x, round(variance, 4)) for x, variance in compare([16], [1, 4])["GRR"]]
    [(1.0, 5.6624), (4.0, 0.0239)]
    """
    if 1 not in (len(domain_sizes), len(epsilons)):
        raise InputError("Give one domain size and many epsilons, or one epsilon and many domain sizes.")
    cases = [(domain, epsilon) for domain in domain_sizes for epsilon in epsilons]
    found = [{c.name: c.variance for c in _candidates(domain, epsilon)} for domain, epsilon in cases]
    x = [float(epsilon if len(domain_sizes) == 1 else domain) for domain, epsilon in cases]
    names = [name for name in _MAKERS if any(name in variances for variances in found)]
    return {name: [(at, one.get(name, math.nan)) for at, one in zip(x, found, strict=True)] for name in names}
