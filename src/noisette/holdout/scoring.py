"""Scores of models on a reusable holdout, and how scikit-learn asks for them.

scikit-learn calls a scorer with a fitted model and records that it set aside. `Scorer` asks the holdout about the model
and compares with the score on those records, which is a good guess: a search costs only where the holdout disagrees.
Losses are returned with a minus, so that greater is better.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from noisette.errors import InputError, PrivacyError
from noisette.exact.number import Number, fraction
from noisette.holdout.answer import Answer
from noisette.holdout.losses import AUC, Loss, predicted
from noisette.holdout.records import Given, Records, compared, numbers

__all__ = ["Scorer", "Splitter", "scored"]

_MODEL = "The model"


def scored(
    holdout: Any,
    model: Any,
    loss: Loss | AUC,
    given: Given,
    known: Records,
    guess: Number | None,
    level: float,
) -> Answer:
    """A model's noisy loss on the holdout."""
    _check(model, loss)
    if isinstance(loss, AUC):
        return _area(holdout, model, loss, given, known, guess, level)

    def phi(X: Any, y: Any) -> Any:
        return loss.values(y, predicted(model, X, loss.uses), getattr(model, "classes_", None))

    bounds = (loss.low, loss.high)
    answer: Answer = holdout.mean(phi, given, _MODEL, bounds=bounds, train=known, guess=guess, level=level)
    return answer


def _area(
    holdout: Any,
    model: Any,
    area: AUC,
    given: Given,
    known: Records,
    guess: Number | None,
    level: float,
) -> Answer:
    """As `scored`, for the area under the ROC curve: scores of records are ranked, not summed."""
    positive = model.classes_[1]

    def scores(X: Any, y: Any) -> Any:
        return predicted(model, X, "scores")

    def exact(measure: AUC, records: Records, found: Any) -> Fraction:
        return measure.exact(np.asarray(records.y == positive, dtype=bool), found)

    plain = AUC(1, 1, False)  # of the training set, whatever its classes
    if guess is None:
        expected = exact(plain, known, compared(scores, known, given, _MODEL))
    else:
        expected = fraction(guess, "guess")
    if not 0 <= expected <= 1:
        raise InputError("guess must lie between 0 and 1, as the area does.")
    answer: Answer = holdout.asked_exactly(
        lambda records: exact(area, records, numbers(scores, records, given)),
        area.sensitivity,
        expected,
        "training set" if guess is None else "guess",
        level,
    )
    return answer


def _check(model: Any, loss: Loss | AUC) -> None:
    labels = isinstance(loss, Loss) and loss.uses == "labels"
    wanted = "predict" if labels else "predict_proba"
    ranks = isinstance(loss, AUC) and hasattr(model, "decision_function")
    if not ranks and not callable(getattr(model, wanted, None)):
        raise InputError(f"The loss {loss.name} needs a fitted model with {wanted}.")
    if not labels and not hasattr(model, "classes_"):
        raise InputError(f"The loss {loss.name} needs a fitted classifier: one with classes_.")
    if isinstance(loss, AUC) and len(model.classes_) != 2:
        raise InputError("The area under the ROC curve needs a model of two classes.")


@dataclass(frozen=True, repr=False)
class Scorer:
    """A scorer as scikit-learn calls it; `answers` has everything that it released."""

    holdout: Any
    loss: Loss | AUC

    def __call__(self, model: Any, X: Any, y: Any = None, **_: Any) -> float:
        """A fitted model's noisy score on the holdout; greater is better."""
        if y is None:
            raise InputError("The scorer needs the labels of the records that were set aside: pass X and y.")
        value: float = self.holdout.score(model, self.loss, train=(X, y)).value
        return value if self.loss.greater_is_better else -value

    def __deepcopy__(self, memo: Any) -> "Scorer":
        return self  # scikit-learn copies parameters, but there is one holdout

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise PrivacyError("A holdout cannot be copied to other processes: search with n_jobs=1.")

    def __repr__(self) -> str:
        return f"Scorer({self.loss.name} on {self.holdout!r})"


class Splitter:
    """One split for scikit-learn that trains on all rows and sets aside the same: the score comes from the holdout.

    >>> [(len(train), len(test)) for train, test in Splitter().split([[1], [2], [3]])]
    [(3, 3)]
    """

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """One."""
        return 1

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Any, Any]]:
        """All rows, twice."""
        rows = X.shape[0] if hasattr(X, "shape") else len(X)
        yield np.arange(rows), np.arange(rows)

    def __repr__(self) -> str:
        return "Splitter()"
