"""Statistics that one record can move far on some tables and hardly on most: how far, and how fast that can change.

Let A_k(x) be the furthest that one record can move the answer of any table within k changes of x. Then

    S(x) = max_k A_k(x) e^(-beta k)

is at least A_0, and between neighbours it changes by at most a factor e^beta, because A_k(x) <= A_(k+1)(x').
[Nissim-Raskhodnikova-Smith 2007; errata E13, E14; proof note: docs/proofs/smooth-sensitivity.md]

Answers and A_k are whole numbers. S is told as the pair (A_k, k) at which it is attained, found exactly: floats compare
only what differs by far.

Vocabulary: `gap` A_k · `changes` k · `reach` how far from the answer t changes can bring it, for t = 1, 2, ….
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from noisette.mechanisms.smooth.largest_sensitivity import Fall
from noisette.privacy import Neighbours

__all__ = ["Pairs", "Statistic", "Whole"]

Whole = NDArray[np.int64]
Pairs = Sequence[tuple[Any, Any, int]]


class Statistic(Protocol):
    """A whole-number answer, with what is known of how far records can move it."""

    @property
    def neighbours(self) -> Neighbours:
        """The relation for which all of it holds."""
        ...

    @property
    def span(self) -> tuple[int, int]:
        """The least and the largest answer of all tables."""
        ...

    @property
    def furthest(self) -> int:
        """The global sensitivity."""
        ...

    def read(self, x: Any) -> Any:
        """Read a table, for the other methods."""
        ...

    def value(self, table: Any) -> int:
        """The answer."""
        ...

    def smooth(self, table: Any, beta: Fraction) -> Fall:
        """S, exactly."""
        ...

    def reaches(self, table: Any) -> tuple[Whole, Whole]:
        """How far down and up t = 1, 2, … changes can bring the answer, at most; the last covers the span."""
        ...

    def pairs(self, beta: Fraction) -> Pairs:
        """Neighbouring tables that show much."""
        ...
