"""Attacks: what an analyst learns about one person from exact answers, and what is left of it within a budget.

Every attack takes the secret, so that it can keep the score, and `ask`, which turns true answers into given ones:
`exact`, a mechanism, or an `Answerer` that keeps a budget. The attacker itself sees given answers only.

>>> from noisette.attacks import SMOKERS, differencing, exact
>>> print(differencing(SMOKERS, "Bob", exact))
Bob's value is 5, the attack says 5: revealed.
"""

from noisette.attacks.answerer import Answerer, exact, guessing_ceiling, tracing_ceiling, tracing_mu
from noisette.attacks.averaging import Averaging, Forecast, averaging, averaging_forecast
from noisette.attacks.demo import (
    SMOKERS,
    Population,
    averaging_demo,
    bits,
    differencing_demo,
    population,
    reconstruction_demo,
    tracing_demo,
)
from noisette.attacks.differencing import Differencing, differencing
from noisette.attacks.reconstruct import Reconstruction, expected_recovery, reconstruct
from noisette.attacks.trace import Tracing, trace
from noisette.errors import BudgetError

__all__ = [
    "SMOKERS",
    "Answerer",
    "Averaging",
    "BudgetError",
    "Differencing",
    "Forecast",
    "Population",
    "Reconstruction",
    "Tracing",
    "averaging",
    "averaging_demo",
    "averaging_forecast",
    "bits",
    "differencing",
    "differencing_demo",
    "exact",
    "expected_recovery",
    "guessing_ceiling",
    "population",
    "reconstruct",
    "reconstruction_demo",
    "trace",
    "tracing_ceiling",
    "tracing_demo",
    "tracing_mu",
]
