"""The differencing attack on the made-up hospital: two harmless counts, one with a person and one without."""

import math
from dataclasses import dataclass

from noisette.answers import Release
from noisette.attacks import guessing_ceiling
from noisette.cli.demo.truth import Truth
from noisette.curator import Curator
from noisette.curator.demo import OLDEST
from noisette.privacy import Promise, Pure

__all__ = ["AGAIN", "ALL", "OTHERS", "SPEND", "Attack", "Counts", "attacked"]

ALL = "SELECT count(*) AS n FROM visits WHERE diagnosis = 'depression'"
OTHERS = f"{ALL} AND age <> {OLDEST}"
SPEND = Pure("0.1")
AGAIN = 20


@dataclass(frozen=True)
class Counts:
    """Two answers, and how far each may be off."""

    everyone: float
    others: float
    error: float = 0.0

    @property
    def difference(self) -> float:
        """What the attacker concludes about the one person."""
        return self.everyone - self.others

    @property
    def doubt(self) -> float:
        """How far off that may be: the errors of two independent answers together."""
        return math.sqrt(2) * self.error

    def reveals(self, most: float) -> bool:
        """Whether it reveals more than was known before, which is that a person has 0 to `most` visits."""
        return self.doubt < most / 2


@dataclass(frozen=True)
class Attack:
    """What the attacker gets from exact answers and from private ones, and what no attacker can exceed."""

    secret: int
    most: int
    exact: Counts
    private: Counts
    repeated: frozenset[float]
    cost: Pure
    left: tuple[Promise, Promise]

    @property
    def ceiling(self) -> float:
        """How often whoever knows everyone else can at most guess right whether she is treated or not."""
        return float(guessing_ceiling(self.cost.epsilon))


def attacked(data: Curator, truth: Truth) -> Attack:
    """Attack exact answers, then private ones, and ask again and again."""
    everyone, others = (truth.rows(question)[0]["n"] for question in (ALL, OTHERS))
    secret = truth.rows(f"SELECT count(*) AS n FROM visits WHERE diagnosis = 'depression' AND age = {OLDEST}")[0]["n"]
    answers = data.sql(ALL, spend=SPEND), data.sql(OTHERS, spend=SPEND)
    repeated = frozenset(_number(data.sql(ALL, spend=SPEND)) for _ in range(AGAIN))
    most = data.policy.tables["visits"].limits.rows or 0
    private = Counts(_number(answers[0]), _number(answers[1]), max(map(_half, answers)))
    left = answers[0].left, answers[1].left
    return Attack(int(secret), most, Counts(everyone, others), private, repeated, Pure(2 * SPEND.epsilon), left)


def _number(answer: Release) -> float:
    return float(answer["n"].values[0].as_py())


def _half(answer: Release) -> float:
    return float(answer["n"].half[0])
