"""The checks of mechanisms that release outcomes: an index with its gap, a list, a transcript.

Exact where the law of a small input can be enumerated, statistical where calls are judged (`ALPHA` each).
"""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from noisette.audit.checks.accuracy import LEVELS
from noisette.audit.checks.interface import ONE, SECRET, refused
from noisette.audit.checks.privacy import ROUNDING
from noisette.audit.checks.sampling import ALPHA, p_value
from noisette.audit.divergence import Floats, hockey_stick, largest_loss, renyi
from noisette.audit.finding import Effort, Finding, found
from noisette.audit.sampled import epsilon_lower_bound
from noisette.audit.subject import Subject
from noisette.errors import InputError
from noisette.privacy import ZCDP, Approx, Promise, Pure

__all__ = [
    "black_box",
    "independent",
    "interval",
    "one_by_one",
    "private",
    "reached",
    "refusals",
    "relations",
    "sums_to_one",
    "tight",
]

Law = Mapping[Hashable, float]

_COMMON = 32  # outcomes that are distinguished in tests of draws; the rest count as one
_ORDERS = (1.01, 1.25, 1.5, 2, 3, 5, 10, 30)


# What it promises


def _answers(m: Subject) -> list[Any]:
    return [x for pair in m.pairs() for x in pair[:2]]


def _law(m: Subject, x: Any) -> Law:
    """The law of an input, computed once for all checks."""
    known = _known(m)
    if repr(x) not in known:
        known[repr(x)] = m.outcomes(x)
    return known[repr(x)]


@lru_cache(maxsize=4)
def _known(m: Subject) -> dict[str, Law]:
    return {}


def sums_to_one(m: Subject, _: Effort) -> Finding:
    """The probabilities of all outcomes sum to one, for each input of `pairs()`."""
    gap = max(abs(1 - math.fsum(_law(m, x).values())) for x in _answers(m))
    sentences = "The probabilities sum to one.", "The probabilities do not sum to one."
    return found("sums to one", gap, ROUNDING, sentences)


def _laws(m: Subject) -> Iterator[tuple[Promise, Floats, Floats]]:
    for x, x_prime, distance in m.pairs():
        first, second = _law(m, x), _law(m, x_prime)
        outcomes = list({**first, **second})
        P, Q = (np.array([law.get(y, 0.0) for y in outcomes]) for law in (first, second))
        yield m.guarantee(distance), P, Q


def _delta(promise: Promise) -> tuple[float, float]:
    """(epsilon, delta) as stated; a pure epsilon is its own, zCDP is looked at where it says delta = 0.01."""
    if isinstance(promise, ZCDP):
        return promise.epsilon_at(0.01), 0.01
    return float(promise.epsilon), float(promise.delta)


def _rho(P: Floats, Q: Floats) -> float:
    """The rho that a pair shows: of all orders a the largest Rényi divergence, divided by a."""
    return max(renyi(P, Q, a) / a for a in _ORDERS)


def private(m: Subject, _: Effort) -> Finding:
    """The divergence of every pair at epsilon stays below delta; of a pure guarantee every log-ratio below epsilon."""
    gaps = [0.0]
    for promise, P, Q in _laws(m):
        epsilon, delta = _delta(promise)
        gaps.append(hockey_stick(P, Q, epsilon) - delta * (1 + 1e-9))
        likely = np.maximum(P, Q) > ROUNDING  # outcomes that lie whole within what a law may leave out
        if isinstance(promise, Pure):
            gaps.append(largest_loss(P[likely], Q[likely]) - epsilon * (1 + 1e-9) - ROUNDING)
        if isinstance(promise, ZCDP):
            gaps.append(_rho(P[likely], Q[likely]) - float(promise.rho) * (1 + 1e-9) - ROUNDING)
    sentences = "Every pair keeps the stated guarantee.", "A pair of neighbours breaks the stated guarantee."
    return found("private", max(gaps), 10 * ROUNDING, sentences)


def _reached(promise: Promise, P: Floats, Q: Floats) -> float:
    """The part of what is stated that a pair shows."""
    epsilon, delta = _delta(promise)
    if isinstance(promise, ZCDP):
        return _rho(P, Q) / float(promise.rho) if promise.rho else 0.0
    if isinstance(promise, Approx) and delta:
        return hockey_stick(P, Q, epsilon) / delta
    return largest_loss(P, Q) / epsilon if epsilon else 0.0


def reached(m: Subject) -> float:
    """The largest part of what is stated that some pair shows."""
    return max(_reached(*laws) for laws in _laws(m))


def tight(m: Subject, _: Effort) -> Finding:
    """Some pair reaches the stated part of the guarantee: nothing much smaller would be true."""
    part = reached(m)
    sentences = (
        f"A pair shows {min(part, 1):.3g} of what is stated.",
        "The stated guarantee is larger than any pair shows.",
    )
    return found("tight", part, m.tightness * (1 - 1e-6), sentences, least=True)


# What it releases


def _fit(law: Law, draws: Sequence[Hashable]) -> float:
    """The p-value of draws; an outcome that the law does not know is a fault."""
    common = sorted(law, key=lambda y: -law[y])[:_COMMON]
    places = {y: i for i, y in enumerate(common)}
    if any(y not in law for y in draws):
        return 0.0
    counts = np.bincount([places.get(y, len(common)) for y in draws], minlength=len(common) + 1)
    chances = np.array([*(law[y] for y in common), 0.0])
    chances[-1] = max(0.0, 1 - chances.sum())
    used = (chances > 1e-9) | (counts > 0)
    return p_value(counts[used], np.maximum(chances[used], 1e-300) / chances[used].sum())


def _drawn(m: Subject, x: Any, count: int) -> list[Hashable]:
    """That many releases: those of the check before, once, if it left as many."""
    left = _left(m)
    return left.pop() if left and len(left[-1]) == count else [m(x) for _ in range(count)]


@lru_cache(maxsize=4)
def _left(m: Subject) -> list[list[Hashable]]:
    return []


def _unsure(m: Subject) -> Any:
    """The input whose outcome is least certain: there draws say most."""
    return min(_answers(m), key=lambda x: max(_law(m, x).values()))


def one_by_one(m: Subject, effort: Effort) -> Finding:
    """Calls follow the stated law."""
    x = _unsure(m)
    draws = [m(x) for _ in range(effort.single)]
    _left(m)[:] = [draws]
    p = _fit(_law(m, x), draws)
    return found("one by one", p, ALPHA, ("Calls follow the stated law.", "Calls do not follow the law."), least=True)


def independent(m: Subject, effort: Effort) -> Finding:
    """Two calls in a row have the product of their laws, judged by whether the first is the likeliest outcome."""
    x = _unsure(m)
    law = _law(m, x)
    mode = max(law, key=lambda y: law[y])
    hits = np.array([y == mode for y in _drawn(m, x, effort.single)], int)
    pairs = np.bincount(2 * hits[:-1:2] + hits[1::2], minlength=4)
    chances = np.outer([1 - law[mode], law[mode]], [1 - law[mode], law[mode]]).ravel()
    sentences = "Calls do not depend on each other.", "Calls depend on each other."
    return found("independent", p_value(pairs, np.maximum(chances, 1e-300)), ALPHA, sentences, least=True)


def black_box(m: Subject, effort: Effort) -> Finding:
    """Sampled outcomes of two neighbours do not prove a larger epsilon."""
    x, x_prime, distance = m.pairs()[0]
    epsilon, delta = _delta(m.guarantee(distance))
    bound = epsilon_lower_bound(m, x, x_prime, runs=effort.single // 2, delta=delta, confidence=1 - ALPHA)
    sentences = "No attack proves more than is stated.", "An attack proves a larger epsilon than is stated."
    return found("black box", bound, epsilon, sentences)


# What to expect


def interval(m: Subject, _: Effort) -> Finding:
    """The error stays within every interval with its probability, for each input of `pairs()`."""
    most = {level: m.interval(level) * (1 + ROUNDING) for level in LEVELS}
    errors = [[(m.error(y, x), p) for y, p in _law(m, x).items()] for x in _answers(m)]
    misses = [level - math.fsum(p for e, p in each if e <= t) for level, t in most.items() for each in errors]
    sentences = "Errors stay within the stated intervals.", "An interval is too narrow."
    return found("interval", max(misses), 10 * ROUNDING, sentences)


# How it is called


def _relation_faults(m: Subject) -> Iterator[bool]:
    if m.own_relation:
        yield m.guarantee().neighbours is not m.neighbours
        return
    for relation, moved in ONE.items():
        try:
            yield m.guarantee(moved).neighbours is not relation
        except InputError:
            continue  # it holds for one relation, and says so


def relations(m: Subject, _: Effort) -> Finding:
    """A guarantee carries its relation."""
    sentences = "Guarantees name their neighbouring relation.", "A neighbouring relation is lost."
    return found("relations", sum(_relation_faults(m)), 0, sentences)


def _spoiled(x: Any, bad: Any) -> Any:
    """The input with its last number replaced."""
    if isinstance(x, Mapping):
        last = list(x)[-1]
        return {**x, last: _spoiled(x[last], bad)}
    if isinstance(x, Sequence) and not isinstance(x, str):
        return type(x)([*x[:-1], _spoiled(x[-1], bad)])  # type: ignore[call-arg]
    return bad


def refusals(m: Subject, _: Effort) -> Finding:
    """Unusable inputs are InputErrors of one sentence that quotes nothing."""
    x = m.pairs()[0][0]
    alone = [math.nan, math.inf, True, "", str(SECRET), None, 1j, b"1", object(), [[SECRET], [SECRET, 3]]]
    within = [_spoiled(x, bad) for bad in (math.nan, math.inf, "", None, 1j, SECRET + 0.25, str(SECRET))]
    accepted = [bad for bad in [*alone, *within] if not refused(lambda bad=bad: m(bad))]  # type: ignore[misc]
    sentences = (
        "Unusable inputs are refused, and no error quotes them.",
        f"{len(accepted)} kinds of input are mishandled.",
    )
    return found("refusals", len(accepted), 0, sentences)
