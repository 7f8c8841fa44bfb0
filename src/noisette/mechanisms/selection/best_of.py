"""The best of several private runs: run a private mechanism a random number of times, and release the best result.

A run gives a score and an output, both of which may be seen, at a price of e = `each`, a pure epsilon. The number K of
runs is drawn from a public law, and the result with the highest score is released:

    eta = 1: geometric, P(K = k) = g (1 - g)^(k-1);   eta = 0: logarithmic, P(K = k) = (1 - g)^k / (k ln(1/g)),

g = gamma = 1/scale. The release is (2 + eta) e-DP however many runs there are: 3 e [Liu-Talwar 2019], 2 e for eta = 0
[Papernot-Steinke 2022]. For the gamma at hand, and this cannot be improved (proof note: docs/proofs/selection.md),

    epsilon = e + (1 + eta) ln((e^e + g) / (1 + g e^e)),   from e (one run) up to (2 + eta) e.

Results with the same score may be ordered in any way that treats all runs alike: here the earliest one wins.

K must stay secret. By itself it tells nothing, but with the result it does: the best of a known number k of runs is k
e-DP and no better. Whoever can time a release learns about K, which the guarantee does not cover: let runs take place
where nobody watches, and publish at a time that was fixed before. K has no upper bound, and must not be cut off.

When: the best of many private models, settings or attempts is to be released at the price of two or three, however many
there are. Give more runs (a larger scale) or better ones (a larger share for each), as `interval` and `each` tell.
Textbook: not in the textbooks; it is how parameters are tuned without paying for every trial.

Vocabulary: `run` rng -> (score, output) · `table` the law of a run, {(score, output): probability} · `gamma` 1/scale ·
`better` than a result is the share of single runs with a higher score.
"""

import math
import numbers
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate
from typing import Annotated, Any, TypeAlias

from noisette.errors import InputError
from noisette.exact.frozen import KW_ONLY, Positive, frozen
from noisette.exact.number import Number, fraction, level_of, positive
from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import exp_down, exp_up, ln_bounds
from noisette.mechanisms.calibration import agreed, pure_epsilon, read_distance, read_sensitivity
from noisette.mechanisms.contract import Distance, Mechanism, Output
from noisette.privacy import Promise, Pure

__all__ = ["BestOf", "Run", "geometric_runs", "logarithmic_runs"]

Result: TypeAlias = tuple[Any, Any]
Run: TypeAlias = Callable[[Random], Result]

_LARGEST = 10**6
_DEAREST = 50  # a larger epsilon of each run is no privacy, and slow to compute with
_BITS = 96
_HALVINGS = 40
_STEEPEST = 700  # beyond this e the ratio is 1/gamma, up to e^-700 or so


@frozen
class BestOf(Mechanism):
    """The result (score, output) of the best of K runs, each of which is `each`-DP by itself.

    >>> m = BestOf.calibrated(Pure(1), scale=10)
    >>> m.guarantee() <= Pure(1), round(float(m.each), 4), m.runs
    (True, 0.3803, 10.0)
    >>> m(lambda rng: (rng.below(6), "a die")) <= (5, "a die")
    True
    """

    kind = Output.OUTCOME
    tightness = 0.99  # the rarer the result of the pair, the nearer it comes to epsilon
    scale: Annotated[Positive, partial(positive, most=_LARGEST, least=Fraction(1))]
    _: KW_ONLY
    each: Annotated[Positive, partial(positive, most=_DEAREST)]
    eta: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.eta, bool) or self.eta not in (0, 1):
            raise InputError("eta must be 1, for a geometric number of runs, or 0, for a logarithmic one.")
        if self.eta == 0 and self.scale == 1:
            raise InputError("scale must be above 1 if eta is 0: a logarithmic law has a gamma below 1.")

    @classmethod
    def calibrated(cls, guarantee: Promise, sensitivity: Distance = 1, *, scale: Number, eta: int = 1) -> "BestOf":
        """Return the one that keeps the guarantee for `sensitivity` people; one run may cost `each` for one of them."""
        agreed(guarantee, sensitivity)
        people, epsilon = read_sensitivity(sensitivity, math.inf), pure_epsilon(guarantee)

        def kept(each: Fraction) -> bool:
            return cls(scale, each=each, eta=eta)._epsilon(people) <= epsilon

        high = min(epsilon / people, Fraction(_DEAREST))
        if kept(high):  # of one run, or where no more than the dearest is needed
            return cls(scale, each=high, eta=eta)
        low = epsilon / people / (2 + eta)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if kept(middle) else (low, middle)
        return cls(scale, each=low, eta=eta)

    # What it promises

    def guarantee(self, distance: Distance = 1) -> Promise:
        """Return what holds for `distance` people, if each run is `each`-DP for one of them."""
        people, neighbours = read_distance(distance, math.inf)
        return Pure(self._epsilon(people) if people else 0, neighbours=neighbours)

    def _epsilon(self, people: Fraction) -> Fraction:
        """e + (1 + eta) ln((e^e + g)/(1 + g e^e)), rounded up, and never above (2 + eta) e."""
        e, g = people * self.each, self.gamma
        ratio = self.scale if e > _STEEPEST else (exp_up(e) + g) / (1 + g * exp_down(e))
        log = Fraction(ln_bounds(Fraction(math.ceil(ratio * 2**_BITS), 2**_BITS), _BITS)[1], 2**_BITS)
        return min(e + (1 + self.eta) * log, (2 + self.eta) * e)

    @property
    def gamma(self) -> Fraction:
        """The parameter of the law of K."""
        return 1 / self.scale

    @property
    def runs(self) -> float:
        """How many runs to expect."""
        g = float(self.gamma)
        return float(self.scale) if self.eta else (1 / g - 1) / -math.log(g)

    # What it releases

    def __call__(self, run: Run | Mapping[Result, Number], rng: Random = SYSTEM) -> Result:
        """Release the best result of K runs; a run takes its randomness from the argument, or is given by its law."""
        single = _single(run)
        draw = geometric_runs if self.eta else logarithmic_runs
        best = None
        for _ in range(draw(self.gamma, rng)):
            result = single(rng)
            if best is None or result[0] > best[0]:
                best = result
        assert best is not None
        return best

    def outcomes(self, x: Mapping[Result, Number]) -> dict[Result, float]:
        """Return the probabilities of results, for a run given by its law."""
        table = _table(x)
        levels = _levels(table)
        return {
            y: float(p / (levels[y[0]][1] - levels[y[0]][0])) * self._between(*levels[y[0]]) for y, p in table.items()
        }

    def _between(self, below: Fraction, upto: Fraction) -> float:
        """f(upto) - f(below), f(t) = E t^K: the probability that the best of K lies between these quantiles."""
        g = self.gamma
        left, right = (1 - (1 - g) * t for t in (below, upto))
        if self.eta:
            return float(g * (upto - below) / (left * right))
        return math.log1p(float(left / right - 1)) / -math.log(g)

    # What to expect

    def error(self, y: Result, x: Mapping[Result, Number]) -> float:
        """Return the share of single runs that are better."""
        return float(1 - _levels(_table(x))[y[0]][1])

    def interval(self, level: float = 0.95) -> float:
        """Return the least t for which at most a share t of single runs is better, with that probability at least.

        >>> round(BestOf(100, each=1).interval(0.95), 3), round(BestOf(100, each=1, eta=0).interval(0.95), 3)
        (0.16, 0.792)
        """
        level_of(level)
        g, missed = float(self.gamma), 1 - level
        if self.eta:
            return 1 - missed / (g + missed * (1 - g))
        return 1 - math.expm1(missed * math.log(g)) / (g - 1)

    # For audits

    def pairs(self) -> Sequence[tuple[dict[Result, Fraction], dict[Result, Fraction], int]]:
        """A rare result is e^e less likely for the neighbour, and so are worse ones; better ones are e^e likelier."""
        r, rare = Fraction(math.ceil(exp_up(-self.each) * 2**32), 2**32), Fraction(1, 1000)
        less, more = r / (1 + r), 1 / (1 + r)
        one = {(0, 0): more - rare * more, (1, 0): rare * more, (2, 0): less}
        other = {(0, 0): less - rare * less, (1, 0): rare * less, (2, 0): more}
        return [(one, other, 1)]


def _single(run: Any) -> Run:
    """A run that is checked, from a function or from its law."""
    if isinstance(run, Mapping):
        return _drawn_from(_table(run))
    if not callable(run) or isinstance(run, type):
        raise InputError("Pass a function of a source of randomness that returns (score, output), or the law of one.")

    def checked(rng: Random) -> Result:
        result = run(rng)
        if not isinstance(result, tuple) or len(result) != 2 or not _is_score(result[0]):
            raise InputError("A run must return (score, output), with a score that is a number.")
        return result

    return checked


def _is_score(score: Any) -> bool:
    """A real number, not NaN."""
    return type(score) is not bool and isinstance(score, numbers.Real) and score == score


def _table(law: Any) -> dict[Result, Fraction]:
    problem = InputError("The law of a run must be {(score, output): probability}, with probabilities that sum to 1.")
    if not isinstance(law, Mapping) or not law:
        raise problem
    if not all(isinstance(y, tuple) and len(y) == 2 and _is_score(y[0]) for y in law):
        raise problem
    if not all(isinstance(p, numbers.Real | str) for p in law.values()):
        raise problem
    table = {y: fraction(p, "A probability") for y, p in law.items()}
    if min(table.values()) < 0 or sum(table.values()) != 1:
        raise problem
    return table


def _drawn_from(table: Mapping[Result, Fraction]) -> Run:
    unit, results = math.lcm(*(p.denominator for p in table.values())), list(table)
    upto = list(accumulate(int(p * unit) for p in table.values()))
    return lambda rng: results[bisect_right(upto, rng.below(unit))]


def _levels(table: Mapping[Result, Fraction]) -> dict[Any, tuple[Fraction, Fraction]]:
    """P(a single run's score is below s), and at most s, for every score s that can happen."""
    levels, below = {}, Fraction(0)
    for score in sorted({y[0] for y, p in table.items() if p}):
        upto = below + sum((p for y, p in table.items() if y[0] == score), Fraction(0))
        levels[score], below = (below, upto), upto
    return levels


def geometric_runs(gamma: Fraction, rng: Random = SYSTEM) -> int:
    """Draw k >= 1 with probability gamma (1 - gamma)^(k-1): coins until the first success."""
    k = 1
    while not rng.flip(gamma.numerator, gamma.denominator):
        k += 1
    return k


def logarithmic_runs(gamma: Fraction, rng: Random = SYSTEM) -> int:
    """Draw k >= 1 with probability (1 - gamma)^k / (k ln(1/gamma)): the first k whose sum exceeds a uniform number.

    The number is refined until it surely lies between two sums, so the law is exact; it takes about k steps.
    """
    prefix, known = rng.bits(64), 64
    while True:
        k = _surely_between(gamma, prefix, known)
        if k is not None:
            return k
        prefix, known = (prefix << 64) | rng.bits(64), known + 64


@lru_cache(maxsize=64)
def _ln(x: Fraction, bits: int) -> tuple[int, int]:
    return ln_bounds(x, bits)


def _surely_between(gamma: Fraction, prefix: int, known: int) -> int | None:
    """The k for which sum_(j<k) <= u ln(1/gamma) < sum_(j<=k) for all u that begin with the prefix, if there is one."""
    bits = known + 64
    lo, hi = _ln(1 / gamma, bits)
    least, most = prefix * lo >> known, -(-(prefix + 1) * hi >> known)
    p, q = gamma.denominator - gamma.numerator, gamma.denominator
    power_lo = power_hi = 1 << bits
    sum_lo = sum_hi = k = 0
    while sum_hi <= least and power_lo:
        k += 1
        power_lo, power_hi = power_lo * p // q, -(-power_hi * p // q)
        before, sum_lo, sum_hi = sum_hi, sum_lo + power_lo // k, sum_hi - (-power_hi // k)
    return k if before <= least and most <= sum_lo else None


examples = [
    BestOf(10, each="1/3"),
    BestOf("3/2", each=2),
    BestOf(3, each="1/10"),
]  # eta = 0 has a law that hardly shows the scale, so audits could not tell a wrong one; tests look at it
