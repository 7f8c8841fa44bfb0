"""Four short stories with numbers: exact answers fall, private ones hold for as long as the budget does.

The secrets are made up by numpy's generator; what is released comes from mechanisms, so every telling differs a little.
"""

import math
from fractions import Fraction

import numpy as np

from noisette.attacks.answerer import Answerer, exact
from noisette.attacks.averaging import averaging, averaging_forecast
from noisette.attacks.ceilings import guessing_ceiling, tracing_ceiling, tracing_mu
from noisette.attacks.differencing import Differencing, differencing
from noisette.attacks.fakes import SMOKERS, bits, population
from noisette.attacks.reconstruct import expected_recovery, reconstruct
from noisette.attacks.trace import trace
from noisette.mechanisms import Gaussian, Geometric, Laplace, calibrate
from noisette.privacy import ZCDP, Neighbours, sensitivity
from noisette.text import aligned

__all__ = ["averaging_demo", "differencing_demo", "reconstruction_demo", "tracing_demo"]

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
