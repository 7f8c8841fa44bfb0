"""Smooth sensitivity: noise that is as wide as one record could move the answer of this table, or of those near it.

Let S be a bound on how far one record moves the answer that changes by at most a factor e^beta between neighbours (see
`statistic`). The answer plus S Z/s is released, rounded to a whole number and moved into a public span:

    Z Cauchy or Student t with 3 degrees:  epsilon-DP,             Z Laplace:  (epsilon, delta)-DP,
    Z Laplace of log-normal size:  epsilon^2/2-zCDP,

with the largest s that this allows (see `admissible` and `log_normal`), so that no smaller epsilon, or delta, holds on
a wide span; of log-normal noise only the bound is known.
[Nissim-Raskhodnikova-Smith 2007; Bun-Steinke 2019; proof note: docs/proofs/smooth-sensitivity.md]

S is rounded up to e^(h j), j whole and beta a whole multiple of h: ln S(x) <= ln S(x') + beta stays true of what is
rounded up, so this costs no privacy and a factor of at most e^(1/64). Rounding the noisy answer and moving it into the
span are post-processing; which whole number it is, is decided with as many bits as that takes.

Noise scaled to the local sensitivity itself is not private: its size tells neighbours apart.

When: a record can move the answer far on few tables only: triangles, trimmed means of skewed values. For quantiles
`InverseSensitivity` errs half as much (see docs/smooth-sensitivity.md). Student noise where a pure guarantee is asked
for, log-normal noise where many releases share a rho, Cauchy noise for tables of a few records.
Textbook: Cormode, smooth sensitivity, which is a maximum over tables and not over outputs; Laplace noise needs a delta.

Vocabulary: `statistic` the answer and what is known of it · `beta` how fast S may fall · `span` what is released.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property, partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from noisette.errors import InputError
from noisette.exact.frozen import KW_ONLY, Exact, Positive, Read, default, frozen, set_fields
from noisette.exact.number import Number, level_of, positive, whole
from noisette.exact.random import SYSTEM, Random
from noisette.exact.rational import sqrt_down
from noisette.laws.law import smallest
from noisette.mechanisms.contract import Distance, Mechanism, Output
from noisette.mechanisms.selection.interval_choice import ENUMERATED
from noisette.mechanisms.smooth.admissible import FREEDOM, Noise, largest_share, rounded_noise, tail
from noisette.mechanisms.smooth.log_normal import log_normal_tail, rounded_log_normal, usual_sigma
from noisette.mechanisms.smooth.order import Order
from noisette.mechanisms.smooth.statistic import Statistic, people, related, sensitivity_steps
from noisette.mechanisms.smooth.triangles import TriangleCount
from noisette.mechanisms.smooth.trimmed import Trimmed, TrimmedAverage
from noisette.privacy import ZCDP, Approx, Neighbours, Promise, Pure
from noisette.privacy.convert import group_delta

__all__ = ["Smooth"]

_FINEST = 64  # steps of ln S in a beta of 1


@frozen
class Smooth(Mechanism):
    """A statistic with noise of its smooth sensitivity, given a table.

    >>> median = Order("1/2", 0, 1000, neighbours=Neighbours.REPLACE)
    >>> m = Smooth.calibrated(Pure(1), statistic=median, beta="1/10")
    >>> m.guarantee(), 0 <= m(range(0, 1000, 10)) <= 1000
    (Pure('1', neighbours=REPLACE), True)
    >>> m.half_width(range(0, 1000, 10)) < 250 < m.interval()
    True
    >>> Smooth.calibrated(ZCDP("1/8"), statistic=median).guarantee()
    ZCDP('1/8', neighbours=REPLACE)
    """

    kind = Output.OUTCOME
    sized_by = "epsilon"
    own_relation = True
    epsilon: Annotated[Positive, partial(positive, most=100)]
    delta: Exact = default(0)
    _: KW_ONLY
    statistic: Statistic
    beta: Annotated[Positive, partial(positive, least=Fraction(1, 10**9))]
    noise: Noise = "student"
    span: Read[tuple[int, int] | None, tuple[int, int]] = default(None)

    def __post_init__(self) -> None:
        span = self.statistic.span if self.span is None else self.span
        set_fields(self, span=_read_span(span, self.statistic))
        if self.noise not in (*FREEDOM, "laplace", "log-normal"):
            raise InputError("noise must be 'cauchy', 'student', 'laplace' or 'log-normal'.")
        if (self.noise == "laplace") != (self.delta > 0) or not 0 <= self.delta < 1:
            raise InputError("Laplace noise needs a delta between 0 and 1, and the others have none.")
        assert self.share  # which refuses a beta that is too large

    @classmethod
    def calibrated(
        cls,
        guarantee: Promise,
        sensitivity: Distance = 1,
        *,
        statistic: Statistic,
        beta: Number | None = None,
        like: Any = None,
        noise: Noise | None = None,
        span: tuple[int, int] | None = None,
    ) -> "Smooth":
        """Return the one that keeps the guarantee; without a `beta` the one that errs least on a table like `like`.

        `like` must be public: last year's, or made up. Without it, beta is what costs nothing (Cauchy), half of what is
        possible (Student, log-normal) or what the first paper takes (Laplace). Without a name, noise is Student's for a
        pure guarantee, Laplace's if there is a delta and log-normal for zCDP.
        """
        law = noise or _fitting(guarantee)
        given = related(guarantee, sensitivity, statistic.neighbours, pure=law != "laplace")
        if law == "log-normal":
            if not isinstance(guarantee, ZCDP):
                raise InputError("Log-normal noise keeps no epsilon: ask for ZCDP(rho), or choose another noise.")
            given = sqrt_down(2 * guarantee.rho) / people(sensitivity, statistic.neighbours), Fraction(0)
        options: dict[str, Any] = {"statistic": statistic, "noise": law, "span": span}
        if beta is not None or like is None:
            return cls(*given, beta=_betas(law, *given)[0] if beta is None else beta, **options)
        made = (cls(*given, beta=each, **options) for each in _betas(law, *given))
        return min(made, key=lambda m: m.half_width(like))

    @property
    def neighbours(self) -> Neighbours:
        """The relation of the statistic."""
        return self.statistic.neighbours

    def guarantee(self, distance: Distance = 1) -> Promise:
        """Return (epsilon, delta), or rho = epsilon^2/2, for one person, and for more what holds for groups."""
        k = people(distance, self.neighbours)
        if self.noise == "log-normal":
            return ZCDP((k * self.epsilon) ** 2 / 2, neighbours=self.neighbours)
        if not self.delta:
            return Pure(k * self.epsilon, neighbours=self.neighbours)
        delta = min(Fraction(1), group_delta(self.epsilon, self.delta, k))
        return Approx(k * self.epsilon, delta, neighbours=self.neighbours)

    @cached_property
    def share(self) -> Fraction:
        """s."""
        return largest_share(self.noise, self.epsilon, self.delta, self.beta)

    def _tail(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(Z > z)."""
        if self.noise == "log-normal":
            return log_normal_tail(float(usual_sigma(self.epsilon, self.beta)), z)
        return tail(self.noise, z)

    # What it releases

    @cached_property
    def _parts(self) -> int:
        """beta/h."""
        return math.ceil(_FINEST * self.beta)

    @cached_property
    def _step(self) -> Fraction:
        """h."""
        return self.beta / self._parts

    def _centre(self, x: Any) -> tuple[int, int]:
        """The answer and j, of which S is e^(h j)."""
        table = self.statistic.read(x)
        gap, changes = self.statistic.smooth(table, self.beta)
        steps = sensitivity_steps(gap, self._step) - changes * self._parts
        return self.statistic.value(table), steps

    def _scale(self, steps: int) -> float:
        """S/s, in floats."""
        return float(1 / self.share) * math.exp(min(700.0, max(-700.0, float(self._step * steps))))

    def _exact_scale(self, steps: int) -> Callable[[Any], Any]:
        """S/s, by the multiprecision context that is given."""
        exponent, share = self._step * steps, self.share
        return lambda mp: (
            mp.exp(mp.mpf(exponent.numerator) / exponent.denominator) * share.denominator / share.numerator
        )

    def __call__(self, x: Any, rng: Random = SYSTEM) -> int:
        """Release a whole number of the span."""
        value, steps = self._centre(x)
        sign = 1 - 2 * rng.bits(1)
        most = abs((self.span[0] if sign < 0 else self.span[1]) - value)
        return value + sign * self._drawn(steps, most, rng)

    def _drawn(self, steps: int, most: int, rng: Random) -> int:
        """|S Z/s|, rounded, but no more than `most`."""
        scales = self._scale(steps), self._exact_scale(steps)
        if self.noise == "log-normal":
            return min(most, rounded_log_normal(usual_sigma(self.epsilon, self.beta), *scales, rng))
        return rounded_noise(self.noise, *scales, most, rng)

    def outcomes(self, x: Any) -> dict[int, float]:
        """P(each whole number of the span); what lies beyond is released as its ends."""
        low, high = self.span
        if high - low > ENUMERATED:
            raise InputError(
                f"Probabilities are written out for at most {ENUMERATED:,} numbers: choose a smaller span."
            )
        value, steps = self._centre(x)
        places = np.arange(low, high + 1)
        return dict(zip(places.tolist(), self._cells(places - value, steps).tolist(), strict=True))

    def _cells(self, noise: NDArray[np.int64], steps: int) -> NDArray[np.float64]:
        scale = self._scale(steps)
        ends = np.concatenate([[-math.inf], noise[1:] - 0.5, [math.inf]]) / scale
        above = self._tail(np.abs(ends))
        left, right = ends[:-1], ends[1:]
        outside = np.where(left >= 0, above[:-1] - above[1:], above[1:] - above[:-1])
        return np.where((left < 0) & (right > 0), 1 - above[:-1] - above[1:], outside)

    # What to expect

    def error(self, y: Any, x: Any) -> float:
        """|released - answer|."""
        return float(abs(int(y) - self.statistic.value(self.statistic.read(x))))

    def half_width(self, x: Any, level: float = 0.95) -> float:
        """Return the error at that level for one table: for planning on public ones, since it tells of the table."""
        return self.half_width_of(self.size(x), level)

    def interval(self, level: float = 0.95) -> float:
        """Return the error at that level for the worst of all tables, where S is the global sensitivity."""
        return self.half_width_of(self.largest_size, level)

    def size(self, x: Any) -> int:
        """Return j, of which S is e^(h j): it tells of the table, but one record moves it by `size_change` at most."""
        return self._centre(x)[1]

    @property
    def size_change(self) -> int:
        """beta/h."""
        return self._parts

    @property
    def largest_size(self) -> int:
        """The size on the worst of all tables."""
        return sensitivity_steps(self.statistic.furthest, self._step)

    def half_width_of(self, size: int, level: float = 0.95) -> float:
        """Return the error at that level of noise of that size."""
        level_of(level)
        scale, width = self._scale(size), self.span[1] - self.span[0]

        def enough(t: int) -> bool:
            return t >= width or 2 * float(self._tail(np.array([(t + 0.5) / scale]))[0]) * (1 + 1e-12) <= 1 - level

        return float(smallest(enough))

    # For audits

    def pairs(self) -> Sequence[tuple[Any, Any, int]]:
        """Those of the statistic."""
        return self.statistic.pairs(self.beta)

    @property
    def tightness(self) -> float:
        """Nearly all of epsilon for a quantile, if the span reaches far beyond its bounds; its ends hide some.

        Delta is lost where a few whole numbers stand for S: all of it shows for bounds far apart only.
        """
        wide = isinstance(self.statistic, Order) and self.span != self.statistic.span
        return 0.8 if wide and self.noise in FREEDOM else 0.3


def _fitting(guarantee: Promise) -> Noise:
    """The law that errs least for a kind of guarantee."""
    if isinstance(guarantee, ZCDP):
        return "log-normal"
    return "laplace" if isinstance(guarantee, Approx) and guarantee.delta else "student"


def _log_ratio(number: int, delta: Fraction) -> float:
    """ln(number/delta), of deltas below the least float as well."""
    return math.log(number * delta.denominator) - math.log(delta.numerator)


def _betas(noise: str, epsilon: Fraction, delta: Fraction) -> list[Fraction]:
    """Some to choose from; the first is the usual one."""
    if noise == "log-normal":
        return [epsilon / part for part in (3, 2, Fraction(5, 2), 4, 6, 8, 12, 16, 32, 64)]
    if noise == "laplace":  # 1 first: what the paper takes
        usual = epsilon / Fraction(max(3.0, 2 * _log_ratio(2, delta))).limit_denominator(1000)
        return [usual / part for part in (1, Fraction(2, 3), 2, 4, 8, 16, 32)]
    if noise == "student":
        return [
            epsilon / 3 * part for part in (Fraction(1, 2), *(Fraction(1, 2**k) for k in range(2, 7)), Fraction(3, 4))
        ]
    free = Fraction(math.log(2 * math.cosh(epsilon) - 1)).limit_denominator(10**6)  # less would buy nothing
    start = min(free, epsilon * Fraction(15, 16))
    return [start + (epsilon - start) * part for part in (Fraction(k, 8) for k in range(7))]


def _read_span(span: Any, statistic: Statistic) -> tuple[int, int]:
    if not isinstance(span, tuple | list) or len(span) != 2:
        raise InputError("span must be a pair (low, high) of whole numbers.")
    low, high = (whole(end, "span", least=-(2**62)) for end in span)
    if not low <= statistic.span[0] < statistic.span[1] <= high < 2**62:
        raise InputError("span must hold all answers that the statistic can have, within 2^62.")
    return low, high


examples = [
    Smooth(1, statistic=Order("1/2", 0, 4, neighbours=Neighbours.REPLACE), beta="1/10", span=(-120, 124)),
    Smooth(2, statistic=Order("1/2", 0, 6), beta="1/2", noise="cauchy", span=(-180, 186)),
    Smooth(
        1,
        "1/100",
        statistic=Order("3/4", 0, 9, neighbours=Neighbours.REPLACE),
        beta="1/10",
        noise="laplace",
        span=(-180, 189),
    ),
    Smooth(2, statistic=Trimmed(6, 0, 8, trim=1), beta="1/5"),
    Smooth(3, statistic=TriangleCount(6), beta="1/3", noise="cauchy"),
    Smooth(1, statistic=Order("1/2", 0, 5), beta="1/5", noise="log-normal", span=(-150, 155)),
    Smooth(2, statistic=TrimmedAverage(0, 6, trim=1, parts=3), beta="1/5"),
]
