"""Another order of the tests: `NOISETTE_ORDER=7 make check` shuffles the files, and the cases within each of them.

The cases of a file stay together, so that what they share is still made once. Every worker finds the same order.
"""

import os
import random
from collections.abc import Sequence
from itertools import groupby
from typing import Any


def shuffled(items: Sequence[Any]) -> list[Any]:
    """The collected items in the order that the environment names; as they are if it names none."""
    if not (seed := os.environ.get("NOISETTE_ORDER")):
        return list(items)
    files = [list(cases) for _, cases in groupby(items, key=lambda item: item.nodeid.partition("::")[0])]
    chance = random.Random(seed)
    chance.shuffle(files)
    for cases in files:
        chance.shuffle(cases)
    return [item for cases in files for item in cases]
