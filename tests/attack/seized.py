"""A state that is looked at, while a person appears: what was seen tells no more than is stated, or is refused before.

The package's own methods are run on all draws, as in `tests/contracts/states`.
"""

import random
from collections import Counter
from fractions import Fraction

from tests.attack.tables import Shelf
from tests.attack.trial import Convicted
from tests.contracts.states.draws import words
from tests.contracts.states.watched import seizable

from noisette.errors import InputError
from noisette.releases.streams.pan_private import PanPrivateDensity


def seized(density: PanPrivateDensity, events: str) -> Counter[str]:
    """One person who appears against the same person who does not."""
    try:
        stated = density.guarantee(releases=events.count("R"), intrusions=events.count("I"))
    except InputError:
        return Counter(questions=1, refused=1)
    loss = seizable(density).loss(events, events.replace("A", "-"))
    if loss > float(stated.epsilon) * (1 + 1e-9):
        raise Convicted("state", f"{events} tells {loss:.6g}, and {stated.epsilon} is stated", density)
    return Counter(questions=1, answered=1)


def histories(seed: int, shelf: Shelf | None = None, longest: int = 5) -> Counter[str]:
    """All orders of up to that many events, at random prices."""
    draw = random.Random(seed)
    epsilon, release_epsilon = (Fraction(draw.randint(1, 60), 20) for _ in range(2))
    density = PanPrivateDensity(1, epsilon=epsilon, release_epsilon=release_epsilon)
    return sum((seized(density, "".join(events)) for events in words("IAR", longest)), Counter())
