"""What a reusable holdout answers: a number, where it came from, how far off it may be, and what it cost."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Answer", "Origin"]

Origin: TypeAlias = Literal["training set", "holdout", "guess"]


@dataclass(frozen=True, repr=False)
class Answer:
    """A noisy answer: the exact one on the holdout lies between `low` and `high` at that level.

    `source` is "training set" (or "guess") if the holdout agrees with that, and then it cost nothing; else "holdout".
    `cost` is 1 for an answer from the holdout, else 0; `left` is how many more may come from it. The error bar covers
    the noise, not the difference between the holdout and the world.

    >>> Answer(0.71, 0.69, 0.73, 0.95, "holdout", 1, 9)
    0.71 (0.69 to 0.73 at 95 %) from the holdout, cost 1, 9 left
    """

    value: float
    low: float
    high: float
    level: float
    source: Origin
    cost: int
    left: int

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        bar = f"({self.low:.4g} to {self.high:.4g} at {100 * self.level:.6g} %)"
        return f"{self.value:.4g} {bar} from the {self.source}, cost {self.cost}, {self.left} left"
