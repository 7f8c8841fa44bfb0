"""What a check found, and how hard it looked."""

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["QUICK", "THOROUGH", "Effort", "Finding", "found", "not_applicable"]


@dataclass(frozen=True)
class Effort:
    """How many draws the statistical checks take: exact checks cost the same with either effort."""

    array: int
    slow_array: int
    single: int
    vector: int


THOROUGH = Effort(array=2**21, slow_array=2**17, single=4000, vector=2000)
QUICK = Effort(array=2**16, slow_array=2**12, single=300, vector=160)


@dataclass(frozen=True)
class Finding:
    """The outcome of one check: what was measured, what the contract allows, and a sentence for a person.

    `bound` tells whether `allowed` is the most or the least that `measured` may be. `witness` is what a failure can be
    seen by: the input, what was expected, and what came instead.
    """

    check: str
    passed: bool
    measured: float | None
    allowed: float | None
    sentence: str
    bound: str = "at most"
    applies: bool = True
    witness: str = ""

    @property
    def margin(self) -> float:
        """How far on the right side of its bound the measurement lies: below 0 if it fails."""
        if self.measured is None or self.allowed is None:
            return float("inf")
        gap = self.allowed - self.measured
        return gap if self.bound == "at most" else -gap


def found(
    check: str,
    measured: float,
    allowed: float,
    sentences: tuple[str, str],
    *,
    witness: Callable[[], str],
    least: bool = False,
) -> Finding:
    """Judge a measurement; `sentences` say what is true if it passes and if it fails, which `witness` then shows.

    >>> seen = found("variance", 2.0, 1.0, ("It fits.", "It is too large."), witness=lambda: "Stated 1, by the law 3.")
    >>> seen.sentence, seen.witness
    ('It is too large.', 'Stated 1, by the law 3.')
    """
    passed = bool(measured >= allowed if least else measured <= allowed)
    bound = "at least" if least else "at most"
    sentence, shown = sentences[0 if passed else 1], "" if passed else witness()
    return Finding(check, passed, float(measured), float(allowed), sentence, bound, witness=shown)


def not_applicable(check: str, reason: str) -> Finding:
    """Say openly that a check has nothing to look at, and why."""
    return Finding(check, True, None, None, reason, applies=False)
