"""The checks of mechanisms that release outcomes: an index with its gap, a list, a transcript.

Exact where the law of a small input can be enumerated, statistical where calls are judged (`ALPHA` each).
"""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from noisette.audit.checks.accuracy import LEVELS
from noisette.audit.checks.interface import ONE, SECRET, lost, refusals_of, shown
from noisette.audit.checks.privacy import ROUNDING
from noisette.audit.checks.sampling import ALPHA, attacked, p_value
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
    answers = _answers(m)
    sums = [math.fsum(_law(m, x).values()) for x in answers]
    x, total = max(zip(answers, sums, strict=True), key=lambda one: abs(1 - one[1]))
    sentences = "The probabilities sum to one.", "The probabilities do not sum to one."
    witness = f"The probabilities of {x} sum to {total}, not to 1."
    return found("sums to one", abs(1 - total), ROUNDING, sentences, witness=lambda: witness)


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
    gaps = [max(_gaps(promise, P, Q)) for promise, P, Q in _laws(m)]
    sentences = "Every pair keeps the stated guarantee.", "A pair of neighbours breaks the stated guarantee."
    worst = int(np.argmax(gaps))
    return found("private", max(0.0, gaps[worst]), 10 * ROUNDING, sentences, witness=lambda: _broken(m, worst))


def _gaps(promise: Promise, P: Floats, Q: Floats) -> Iterator[float]:
    epsilon, delta = _delta(promise)
    yield hockey_stick(P, Q, epsilon) - delta * (1 + 1e-9)
    likely = np.maximum(P, Q) > ROUNDING  # outcomes that lie whole within what a law may leave out
    if isinstance(promise, Pure):
        yield largest_loss(P[likely], Q[likely]) - epsilon * (1 + 1e-9) - ROUNDING
    if isinstance(promise, ZCDP):
        yield _rho(P[likely], Q[likely]) - float(promise.rho) * (1 + 1e-9) - ROUNDING


def _broken(m: Subject, pair: int) -> str:
    """The pair, its promise, and the likely outcome that tells it apart best."""
    x, x_prime, distance = m.pairs()[pair]
    first, second = _law(m, x), _law(m, x_prime)
    likely = [y for y in {**first, **second} if max(first.get(y, 0.0), second.get(y, 0.0)) > ROUNDING]

    def loss(y: Hashable) -> float:
        p, q = sorted((first.get(y, 0.0), second.get(y, 0.0)))
        return q / p if p else math.inf

    worst = max(likely, key=loss)
    chances = f"has probability {first.get(worst, 0.0):.4g} and {second.get(worst, 0.0):.4g}"
    return f"{x} and {x_prime} with {m.guarantee(distance)}: the outcome {worst!r} {chances}."


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
    witness = f"The best of {len(m.pairs())} pairs reaches {part:.6g}, expected {m.tightness}."
    return found("tight", part, m.tightness * (1 - 1e-6), sentences, least=True, witness=lambda: witness)


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
    sentences = "Calls follow the stated law.", "Calls do not follow the law."
    strange = [y for y in draws if y not in _law(m, x)]
    said = f"the law knows no {strange[0]!r}" if strange else f"a sound mechanism is this far off with p = {p:.3g}"
    return found(
        "one by one", p, ALPHA, sentences, least=True, witness=lambda: f"{len(draws):,} calls with {x}: {said}."
    )


def independent(m: Subject, effort: Effort) -> Finding:
    """Two calls in a row have the product of their laws, judged by whether the first is the likeliest outcome."""
    x = _unsure(m)
    law = _law(m, x)
    mode = max(law, key=lambda y: law[y])
    hits = np.array([y == mode for y in _drawn(m, x, effort.single)], int)
    pairs = np.bincount(2 * hits[:-1:2] + hits[1::2], minlength=4)
    chances = np.outer([1 - law[mode], law[mode]], [1 - law[mode], law[mode]]).ravel()
    sentences = "Calls do not depend on each other.", "Calls depend on each other."
    p = p_value(pairs, np.maximum(chances, 1e-300))
    witness = f"Calls with {x} that follow each other: independent ones are this far from it with p = {p:.3g}."
    return found("independent", p, ALPHA, sentences, least=True, witness=lambda: witness)


def black_box(m: Subject, effort: Effort) -> Finding:
    """Sampled outcomes of two neighbours do not prove a larger epsilon."""
    x, x_prime, distance = m.pairs()[0]
    epsilon, delta = _delta(m.guarantee(distance))
    bound = epsilon_lower_bound(m, x, x_prime, runs=effort.single // 2, delta=delta, confidence=1 - ALPHA)
    sentences = "No attack proves more than is stated.", "An attack proves a larger epsilon than is stated."
    witness = attacked(x, x_prime, bound, epsilon, delta)
    return found("black box", bound, epsilon, sentences, witness=lambda: witness)


# What to expect


def interval(m: Subject, _: Effort) -> Finding:
    """The error stays within every interval with its probability, for each input of `pairs()`."""
    most = {level: m.interval(level) * (1 + ROUNDING) for level in LEVELS}
    errors = [[(m.error(y, x), p) for y, p in _law(m, x).items()] for x in _answers(m)]
    misses = [
        (
            level - math.fsum(p for e, p in each if e <= t),
            f"{x} has an error above {t:.6g} more often than {level} says.",
        )
        for level, t in most.items()
        for x, each in zip(_answers(m), errors, strict=True)
    ]
    sentences = "Errors stay within the stated intervals.", "An interval is too narrow."
    miss, witness = max(misses, key=lambda one: one[0])
    return found("interval", miss, 10 * ROUNDING, sentences, witness=lambda: witness)


# How it is called


def _relation_faults(m: Subject) -> Iterator[tuple[bool, str]]:
    if m.own_relation:
        yield lost(m.guarantee(), m.neighbours)
        return
    for relation, moved in ONE.items():
        try:
            yield lost(m.guarantee(moved), relation)
        except InputError:
            continue  # it holds for one relation, and says so


def relations(m: Subject, _: Effort) -> Finding:
    """A guarantee carries its relation."""
    sentences = "Guarantees name their neighbouring relation.", "A neighbouring relation is lost."
    faults = [said for fault, said in _relation_faults(m) if fault]
    return found("relations", len(faults), 0, sentences, witness=lambda: shown(faults))


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
    return refusals_of([*alone, *within], [], m, m)
