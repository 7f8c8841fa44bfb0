"""What every running count offers.

    counter.begin(many) -> Running          nothing is counted yet
    running.step(x)     -> released sums    one whole number for each key: what came in this step goes in
    running.state()     -> plain data       `counter.resume(state)` goes on from there; SECRET, for it tells the noise

Vocabulary: `horizon` how many steps there are at most · `many` keys, each with a sum of its own · an event lies in one
step and one key, and changes that number by at most 1.
"""

from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from noisette.errors import BudgetError, InputError
from noisette.exact.number import whole
from noisette.exact.random import SYSTEM, Random
from noisette.privacy import Guarantee
from noisette.privacy.sensitivity import Sensitivity
from noisette.process import Origin
from noisette.releases.streams.participation import Participation

__all__ = ["STREAM", "Counter", "Floats", "Running", "read_horizon", "read_keys", "read_step"]

MOST_STEPS = 1 << 40

STREAM = "stream of sums"
"""What an error calls sums that go on."""

Floats: TypeAlias = NDArray[np.float64]


class Running(Protocol):
    """Sums so far, one for each key. A forked process cannot go on with them: that would release them twice."""

    @property
    def steps(self) -> int:
        """How many steps were released."""
        ...

    def step(self, x: Any, rng: Random = SYSTEM) -> NDArray[Any]:
        """Release the sums after one more step, in which x came."""
        ...

    def state(self) -> dict[str, Any]:
        """All that `resume` needs, as JSON has it."""
        ...


class Counter(Protocol):
    """How sums are released after every step. A frozen value."""

    @property
    def horizon(self) -> int:
        """After how many steps it ends."""
        ...

    @property
    def who(self) -> Participation:
        """How often one unit takes part."""
        ...

    @property
    def parts(self) -> list[tuple[Any, Sensitivity]]:
        """The mechanisms that are used, the sums' own first, each with how far one unit moves what it is applied to."""
        ...

    def guarantee(self) -> Guarantee:
        """What holds for one unit over all steps together."""
        ...

    def begin(self, many: int = 1) -> Running:
        """Sums of that many keys."""
        ...

    def resume(self, state: dict[str, Any]) -> Running:
        """Go on from a state."""
        ...

    def deviations(self, steps: Any) -> Floats:
        """The standard deviation of the sum after each of these steps, which are counted from 1."""
        ...

    def between(self, first: Any, last: Any) -> Floats:
        """The standard deviation of the sum after step `last` minus that after step `first`."""
        ...


# What every counter checks


def read_horizon(horizon: int) -> int:
    """Read a number of steps."""
    if whole(horizon, "horizon") > MOST_STEPS:
        raise InputError("horizon must be at most 2^40 steps, which are 35 years of milliseconds.")
    return horizon


def read_keys(many: int, most: int) -> int:
    """Read a number of keys: a counter has `most` at most."""
    if whole(many, "many") > most:
        raise InputError(f"This counter is for at most {most:,} keys: calibrate one with many={many}.")
    return many


def read_step(x: Any, many: int, steps: int, horizon: int, origin: Origin) -> NDArray[Any]:
    """Read what came in a step after `steps` others: a whole number for each key; not in a forked process."""
    origin.check(STREAM)
    came = np.asarray(x)
    if steps >= horizon:
        raise BudgetError(f"All {horizon:,} steps of this stream are over: begin another one.")
    if came.shape != (many,) or came.dtype.kind not in "iu":
        raise InputError(f"A step has one whole number for each of the {many:,} keys.")
    return came
