"""Made-up secrets to attack, and four short stories: exact answers fall, private ones hold as long as the budget does.

The secrets are made up by numpy's generator; what is released comes from mechanisms, so every telling differs a little.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from noisette.attacks.answerer import Answerer, exact, guessing_ceiling, tracing_ceiling, tracing_mu
from noisette.attacks.averaging import averaging, averaging_forecast
from noisette.attacks.differencing import Differencing, differencing
from noisette.attacks.reconstruct import expected_recovery, reconstruct
from noisette.attacks.trace import trace
from noisette.exact.number import whole
from noisette.mechanisms import Gaussian, Geometric, Laplace, calibrate
from noisette.privacy import ZCDP, Neighbours, sensitivity
from noisette.text import aligned

__all__ = [
    "SMOKERS",
    "Population",
    "averaging_demo",
    "bits",
    "differencing_demo",
    "population",
    "reconstruction_demo",
    "tracing_demo",
]

# Made-up secrets, from numpy's generator, which never makes noise for a release


def bits(n: int, generator: np.random.Generator | None = None) -> NDArray[np.int64]:
    """Return n independent fair bits: one secret for each of n people.

    >>> bits(200).shape
    (200,)
    """
    return (generator or np.random.default_rng()).integers(0, 2, whole(n, "n"))


@dataclass(frozen=True)
class Population:
    """Rows of 0s and 1s of those in the table and of others like them, and how frequent each attribute is."""

    inside: NDArray[np.bool_] = field(repr=False)
    outside: NDArray[np.bool_] = field(repr=False)
    frequencies: NDArray[np.float64] = field(repr=False)


def population(
    people: int, attributes: int, others: int = 1000, generator: np.random.Generator | None = None
) -> Population:
    """Return people with independent attributes of frequencies p ~ Beta(1/2, 1/2), like those of genetic variants.

    >>> population(100, 50).inside.shape
    (100, 50)
    """
    n, d, k = whole(people, "people"), whole(attributes, "attributes"), whole(others, "others")
    generator = generator or np.random.default_rng()
    p = generator.beta(0.5, 0.5, d)
    rows = generator.random((n + k, d), dtype=np.float32) < p.astype(np.float32)
    return Population(rows[:n], rows[n:], p)


# A study of smokers. The five people with names and the histogram [10, 2, 4, 13, 44, 35] of 0 to 5 cigarettes a day are
# those of G. Bassi's lecture "Differential privacy and generalization" (KTH); the other people are filled in.


_NAMED = {"Alice": 3, "Bob": 5, "Charles": 1, "Diana": 0, "Zoe": 4}
_HISTOGRAM = (10, 2, 4, 13, 44, 35)


def _table() -> dict[str, int]:
    named = list(_NAMED.values())
    unnamed = [value for value, count in enumerate(_HISTOGRAM) for _ in range(count - named.count(value))]
    return _NAMED | {f"person {number}": value for number, value in enumerate(unnamed, start=len(named) + 1)}


SMOKERS: Mapping[str, int] = MappingProxyType(_table())
"""Cigarettes a day of 108 made-up people; Bob smokes 5."""


# Stories


_REPLACE = Neighbours.REPLACE


def differencing_demo() -> str:
    """Tell how two averages give Bob away, and what is left of it at epsilon 1.

    >>> print(differencing_demo())
    Differencing: 108 people say how many cigarettes they smoke a day, 0 to 5. Is Bob's answer safe?
    ...
    """
    raw = differencing(SMOKERS, "Bob", exact)
    noise = Geometric(12)  # one person moves (participants, cigarettes) by at most 1 + 5, so each answer costs 1/2
    private = [differencing(SMOKERS, "Bob", Answerer(noise, 1, sensitivity=6)) for _ in range(200)]
    hits = sum(attack.revealed for attack in private)
    rms = math.hypot(*(attack.error or 0.0 for attack in private)) / math.sqrt(len(private))
    sd = math.sqrt(2 * noise.variance())
    refused = differencing(SMOKERS, "Bob", Answerer(noise, "1/2", sensitivity=6))
    ceiling = guessing_ceiling(Fraction(5) / noise.scale, choices=6)
    return f"""\
Differencing: 108 people say how many cigarettes they smoke a day, 0 to 5. Is Bob's answer safe?

Exact answers
{_told(raw)}
  {raw}

Geometric noise of scale 12, 1/2-DP for each of the two answers
{_told(private[0])}
  {private[0]}

Many such attacks: exact {hits} times of 200, root mean square error {rms:.1f}; the noise alone has {sd:.1f}.
No attack on these answers guesses a value that is uniform among 0 to 5 with a chance above {ceiling:.0%}; without any
answer it is {1 / 6:.0%}.
With half the budget: {refused}"""


def _told(attack: Differencing) -> str:
    answers = [("everyone", *(attack.everyone or (0, 0))), ("all but Bob", *(attack.others or (0, 0)))]
    parts = [(who, n, total / max(n, 1)) for who, n, total in answers]
    return "\n".join(f"  {who:<12} {n:g} participants, {mean:.4f} a day on average" for who, n, mean in parts)


def averaging_demo() -> str:
    """Tell how noise averages out, what that costs, and where a budget ends it.

    >>> print(averaging_demo())
    Averaging: 35 of 108 people smoke 5 a day; each answer has noise and costs 1/2. Why not ask again?
    ...
    """
    m, truth = Geometric(2), sum(value == 5 for value in SMOKERS.values())
    return f"""\
Averaging: {truth} of {len(SMOKERS)} people smoke 5 a day; each answer has noise and costs 1/2. Why not ask again?

What it buys and what it costs, known before anything is asked
{averaging_forecast(m, (1, 10, 100, 1000, 10_000))}

Nobody counts
  {averaging(truth, m, 10_000)}
A budget of 5
  {averaging(truth, Answerer(m, 5), 10_000)}

Noise alone does not protect: the count of answers does. An answerer that remembers would give the same answer again."""


def reconstruction_demo() -> str:
    """Tell which share of 200 secret bits 800 noisy counts give away, against the size of the noise.

    >>> print(reconstruction_demo())
    Reconstruction: 200 people, a secret bit each; 800 random groups of them are counted.
    ...
    """
    n, generator = 200, np.random.default_rng(2003)
    secret = bits(n, generator)
    scales = [ratio * math.sqrt(n) for ratio in (0.03, 0.1, 0.3, 1, 3, 10)]
    found = [reconstruct(secret, Laplace(scale), generator=generator).recovered for scale in scales]
    expected = [expected_recovery(n, scale * math.sqrt(2)) for scale in scales]
    rows = [
        [f"{scale:.2f}", f"{scale / math.sqrt(n):.2f}", f"{share:.1%}", f"{due:.1%}"]
        for scale, share, due in zip(scales, found, expected, strict=True)
    ]
    moves = sensitivity.counts(4 * n, neighbours=_REPLACE)
    private = reconstruct(secret, Answerer(calibrate(Geometric, 1, sensitivity=moves), 1, sensitivity=moves))
    return f"""\
Reconstruction: 200 people, a secret bit each; 800 random groups of them are counted.

Exact counts      {reconstruct(secret, exact)}

Laplace noise of scale b
{aligned(["b", "b / sqrt(n)", "bits right", "expected"], rows)}

A budget of 1     {private}
Guessing has 50 %, and no attack on answers within this budget has more than {guessing_ceiling(1):.0%} on average."""


def tracing_demo() -> str:
    """Tell which share of 100 people is found in the released means of 20,000 attributes.

    >>> print(tracing_demo())
    Tracing: the means of 20,000 attributes of 100 people are released. Who of 1,100 candidates took part?
    ...
    """
    n, d, budget = 100, 20_000, ZCDP("1/50")
    fake = population(n, d, 1000, np.random.default_rng(2015))
    moves = sensitivity.normalised(d, n, neighbours=_REPLACE)
    private = calibrate(Gaussian, budget, sensitivity=moves)
    asked = [("none", exact)] + [(f"{s:g}", Gaussian(s)) for s in (0.05, 0.3, 1)]
    asked.append((f"{float(private.sigma):.2f}", Answerer(private, budget, sensitivity=moves)))
    rows = []
    for sigma, ask in asked:
        found = trace(fake.inside, fake.outside, fake.frequencies, ask)
        mu = math.inf if sigma == "none" else tracing_mu(n, d, sigma)
        rows.append([sigma, f"{found.tpr:.0%}", f"{found.false_alarms:.1%}", f"{tracing_ceiling(mu, 0.01):.1%}"])
    return f"""\
Tracing: the means of 20,000 attributes of 100 people are released. Who of 1,100 candidates took part?

{aligned(["noise sd", "members found", "others accused", "no attack at 1 % finds more than"], rows)}

The last line keeps {budget}, which is epsilon {budget.epsilon_at("1e-6"):.2f} at delta 1e-6. Its noise is larger
than the means themselves: this many means of this few people cannot be both private and useful."""
