"""Losses of models with bounds, without which one record could move a score by any amount.

    accuracy            1 if the label is right, else 0
    log_loss(clip)      -ln p, p the probability of the right label, at least `clip`: between 0 and -ln clip
    brier               half of the sum of (p_k - [y = k])^2 over all labels k: between 0 and 1
    squared_error(a, b) (prediction - y)^2, both put between a and b: between 0 and (b - a)^2

are means of one value for each record, so that a record, replaced by another, moves them by (high - low)/n at most. The
area under the ROC curve is none, and has a proof of its own: see `AUC`.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from noisette.errors import InputError
from noisette.exact.frozen import Exact, frozen
from noisette.exact.number import Number, fraction, whole
from noisette.holdout.records import Floats

__all__ = ["AUC", "Loss", "accuracy", "auc", "brier", "log_loss", "predicted", "read_loss", "squared_error"]

Uses = Literal["labels", "probabilities"]


@frozen
class Loss:
    """A value for each record between `low` and `high`: of(y, predictions), or of(y, probabilities, classes).

    >>> accuracy.name, [round(float(end), 3) for end in (log_loss().low, log_loss().high)]
    ('accuracy', [0.0, 6.908])
    """

    name: str
    of: Callable[..., Any]
    low: Exact
    high: Exact
    uses: Uses = "labels"
    greater_is_better: bool = False

    def __post_init__(self) -> None:
        if not callable(self.of) or self.low >= self.high:
            raise InputError("A loss needs a function of labels and predictions, and bounds: low below high.")

    def values(self, y: Any, predictions: Any, classes: Any) -> Floats:
        """The value of each record, moved to [0, 1]."""
        more = (classes,) if self.uses == "probabilities" else ()
        found = np.asarray(self.of(y, predictions, *more), dtype=float)
        inside: Floats = (found - float(self.low)) / float(self.high - self.low)
        return inside


@frozen
class AUC:
    """The area under the ROC curve where both classes have enough records: at least `positives` and `negatives`.

    With m positives, k negatives, U pairs in the right order (ties count half), M = max(m, `positives`) and
    Q = max(k, `negatives`), it is 1/2 + (U - mk/2)/(MQ), which is U/(mk) if the stated numbers are right. A record that
    is replaced by one with the same label moves it by at most 1/`positives` or 1/`negatives`; one that gets the other
    label, both being L, by at most max(1/L, (1/2 + (L - 1)/(n - L + 1))/L), which is 1/L for L <= n/3 + 1. It holds for
    all records, also if the stated numbers are wrong. Proof: docs/proofs/holdout.md.

    >>> auc(least=200).sensitivity(1000), auc(positives=300, negatives=700).sensitivity(1000)
    (Fraction(1, 200), Fraction(1, 300))
    """

    name = "auc"
    greater_is_better = True
    positives: int
    negatives: int
    labels_change: bool

    def sensitivity(self, n: int) -> Fraction:
        """How far one of n records, replaced by another, can move it."""
        least = min(self.positives, self.negatives)
        if not self.labels_change:
            return Fraction(1, least)
        return max(Fraction(1), Fraction(1, 2) + Fraction(least - 1, max(n - least + 1, 1))) / least

    def exact(self, right: Any, scores: Floats) -> Fraction:
        """The area for scores of records whose label is the positive one, or not."""
        up, down = np.asarray(scores)[right], np.sort(np.asarray(scores)[~right])
        twice = int(np.searchsorted(down, up, "left").sum()) + int(np.searchsorted(down, up, "right").sum())
        m, k = len(up), len(down)
        return Fraction(1, 2) + Fraction(twice - m * k, 2 * max(m, self.positives) * max(k, self.negatives))


def auc(*, least: int | None = None, positives: int | None = None, negatives: int | None = None) -> AUC:
    """Return the area under the ROC curve: `least` of each class, or the public numbers of positives and negatives.

    With public numbers the guarantee is about records that are replaced by others of the same class.
    """
    if least is not None and positives is None and negatives is None:
        n = whole(least, "least")
        return AUC(n, n, True)
    if least is None and positives is not None and negatives is not None:
        return AUC(whole(positives, "positives"), whole(negatives, "negatives"), False)
    raise InputError(
        "The area under the ROC curve needs a lower bound of both classes, auc(least=200), or both public numbers, "
        "auc(positives=300, negatives=700)."
    )


# The usual ones


def log_loss(clip: Number = "0.001") -> Loss:
    """Return the logarithmic loss of the right label's probability, at least `clip` (and at most 1)."""
    least = fraction(clip, "clip")
    if not 0 < least < 1:
        raise InputError("clip must lie strictly between 0 and 1: probabilities below it count as this one.")
    end = float(least)

    def of(y: Any, p: Any, classes: Any) -> Any:
        return -np.log(np.clip(_right(y, p, classes), end, 1.0))

    return Loss("log_loss", of, 0, Fraction(-math.log(end)), "probabilities")


def squared_error(low: Number, high: Number) -> Loss:
    """Return the squared error of predictions and labels, both put between two public numbers."""
    a, b = fraction(low, "low"), fraction(high, "high")
    if a >= b:
        raise InputError("low must be below high: squared_error(0, 100).")

    def of(y: Any, predictions: Any) -> Any:
        first, second = (np.clip(np.asarray(part, dtype=float), float(a), float(b)) for part in (predictions, y))
        return (first - second) ** 2

    return Loss("squared_error", of, 0, (b - a) ** 2)


def _brier(y: Any, p: Any, classes: Any) -> Any:
    p = np.asarray(p, dtype=float)
    return ((p - (np.asarray(y)[:, None] == np.asarray(classes)[None, :])) ** 2).sum(axis=1) / 2


def _right(y: Any, p: Any, classes: Any) -> Any:
    """The probability of each record's own label; 0 for a label that the model does not know."""
    return (np.asarray(p, dtype=float) * (np.asarray(y)[:, None] == np.asarray(classes)[None, :])).sum(axis=1)


accuracy = Loss("accuracy", lambda y, predictions: np.asarray(predictions) == y, 0, 1, greater_is_better=True)
brier = Loss("brier", _brier, 0, 1, "probabilities")

_NAMED = {"accuracy": accuracy, "brier": brier, "log_loss": log_loss()}


def read_loss(loss: Any) -> Loss | AUC:
    """The loss with that name, or that loss."""
    if isinstance(loss, Loss | AUC):
        return loss
    if isinstance(loss, str) and loss in _NAMED:
        return _NAMED[loss]
    raise InputError(
        'A loss needs bounds: use "accuracy", "log_loss", "brier", squared_error(low, high), auc(least=...) or a Loss.'
    )


# Predictions


def predicted(model: Any, X: Any, uses: str) -> Any:
    """What a model says about rows: labels, probabilities of labels, or scores that rank them."""
    if uses == "labels":
        return model.predict(X)
    if uses == "probabilities":
        return model.predict_proba(X)
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    return np.asarray(model.predict_proba(X))[:, 1]
