"""A holdout set that can be asked again and again: `ReusableHoldout`.

The guarantee is about the records of the holdout, under replace, and about all answers together. It rests on this: what
a question computes for a record depends on that record alone, and functions and models do nothing but compute. They run
in this process, so malicious code could copy records elsewhere; let strangers send predictions instead
(`Leaderboard`). How long a question takes is not protected.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal, NoReturn, get_args

from noisette.errors import InputError, PrivacyError
from noisette.exact.number import Number, level_of, positive
from noisette.holdout.answer import Answer, Origin
from noisette.holdout.losses import AUC, Loss, read_loss
from noisette.holdout.machine import Keeper, Kept, Machine, OneProcess, Steps
from noisette.holdout.records import Given, Records, checked, on_grid, values
from noisette.holdout.scoring import Scorer, Splitter, scored
from noisette.holdout.steps import Scaled, answered, on_holdout, on_training, read_bounds, read_guess, rounded
from noisette.holdout.thresholdout import Thresholdout
from noisette.privacy import Guarantee, Neighbours, Spend, as_promise

__all__ = ["Method", "ReusableHoldout", "mechanism_of"]

Method = Literal["sparse vector", "published"]


class ReusableHoldout:
    """Answers questions about a holdout set from the training set as long as both agree; locks itself after `budget`.

    `budget` is how many answers may come from the holdout, and `spend` the guarantee of all answers together. An
    answer comes from the holdout if it differs from the training set's by `threshold` or more, up to noise.
    `method="published"` is Thresholdout as in its paper, and `noise` its sigma.
    `kept` is a mechanism with a line of states that a ledger keeps (`noisette.open_holdout`).
    [Dwork-Feldman-Hardt-Pitassi-Reingold-Roth 2015]

    >>> import numpy as np
    >>> X, y = np.arange(4000) % 2, np.arange(4000) % 4 < 2
    >>> holdout = ReusableHoldout(X[::2], y[::2], X[1::2], y[1::2], budget=2, spend=1)
    >>> holdout.ask(lambda x, y: y).source
    'training set'
    >>> holdout.ask(lambda x, y: x).source
    'holdout'
    >>> holdout
    <reusable holdout of 2,000 records: 1 of 2 answers left, 1-DP under replace>
    """

    def __init__(
        self,
        X: Any,
        y: Any = None,
        X_train: Any = None,
        y_train: Any = None,
        *,
        budget: int = 10,
        spend: Spend | None = None,
        threshold: Number | None = None,
        method: Method = "sparse vector",
        noise: Number | None = None,
        kept: tuple[Thresholdout, Keeper] | None = None,
    ) -> None:
        if X_train is None or (y is None) != (y_train is None):
            raise InputError("Give the training set, too: ReusableHoldout(X, y, X_train, y_train, budget=10, spend=1).")
        self._train = Records.of(X_train, y_train, "training set")
        self._holdout = Records.of(X, y, "holdout set")
        if kept is None:
            mechanism = mechanism_of(len(self._holdout), budget, spend, threshold, method, noise)
            kept = mechanism, Kept(Machine(mechanism))
        self.mechanism: Thresholdout = kept[0]
        self._line = OneProcess(kept[1])
        self._stated = self.guarantee if spend is None else as_promise(spend).restated(Neighbours.REPLACE)

    # What it promises

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of all answers together, for any number of questions; neighbours replace one record."""
        return self.mechanism.guarantee

    @property
    def left(self) -> int:
        """How many answers may still come from the holdout."""
        return max(0, self.mechanism.budget - self._line.last.given)

    # Questions

    def ask(
        self,
        phi: Callable[..., Any],
        *,
        sensitivity: Number | None = None,
        bounds: tuple[float, float] = (-math.inf, math.inf),
        guess: Number | None = None,
        vectorised: bool = False,
        level: float = 0.95,
    ) -> Answer:
        """Release a noisy mean of phi(x, y) on the holdout; phi has values in [0, 1].

        phi is called for one record at a time; with `vectorised` for all, phi(X, y), and must treat each row by itself.
        With a `sensitivity` phi(X, y) is any number of a whole set that one record, replaced by another, moves by at
        most that, even where it fails or leaves `bounds`. Nobody can check that, and the guarantee rests on it.
        A public `guess` takes the place of the training set's answer.
        """
        _check_callable(phi)
        if sensitivity is not None:
            return self._function(phi, positive(sensitivity, "sensitivity"), bounds, guess, level)
        return self.mean(phi, "all" if vectorised else "record", "The function", guess=guess, level=level)

    def mean(
        self,
        phi: Callable[..., Any],
        given: Given,
        named: str,
        *,
        bounds: tuple[Fraction, Fraction] = (Fraction(0), Fraction(1)),
        train: Records | None = None,
        guess: Number | None = None,
        level: float = 0.95,
    ) -> Answer:
        """Release a noisy low + (high - low) times the mean of phi; errors call phi `named`."""
        level_of(level)
        m, (low, high), n = self.mechanism, bounds, len(self._holdout)
        known = self._train if train is None else train
        trained = Fraction(on_grid(checked(phi, known, given, named), m.grid), len(known) * m.grid)
        expected = low + (high - low) * trained if guess is None else read_guess(guess, (float(low), float(high)))
        threshold = math.ceil(m.threshold * n * m.grid)
        scaled = Scaled((high - low) / (n * m.grid), threshold, Fraction(n + 1, 2), (float(low), float(high)), low)
        source: Origin = "training set" if guess is None else "guess"
        return self.asked(lambda: on_grid(values(phi, self._holdout, given), m.grid), scaled, expected, source, level)

    def _function(
        self,
        f: Callable[..., Any],
        sensitivity: Fraction,
        bounds: tuple[float, float],
        guess: Number | None,
        level: float,
    ) -> Answer:
        level_of(level)
        low, high = read_bounds(bounds)
        expected = on_training(f, self._train, (low, high)) if guess is None else read_guess(guess, (low, high))
        unit = sensitivity / (self.mechanism.grid - 1)  # one step of `grid` is left for the rounding of floats
        source: Origin = "training set" if guess is None else "guess"
        scaled = self._function_scale(unit, (low, high))
        return self.asked(lambda: on_holdout(f, self._holdout, (low, high), unit), scaled, expected, source, level)

    def asked_exactly(
        self,
        exact: Callable[[Records], Fraction],
        sensitivity: Callable[[int], Fraction],
        guess: Fraction,
        source: Origin,
        level: float,
    ) -> Answer:
        """Release an exact number in [0, 1] of all records with noise; the sensitivity is that for n records."""
        unit = sensitivity(len(self._holdout)) / self.mechanism.grid
        scaled = self._function_scale(unit, (0.0, 1.0))
        return self.asked(lambda: rounded(exact(self._holdout) / unit), scaled, guess, source, level)

    def _function_scale(self, unit: Fraction, bounds: tuple[float, float]) -> Scaled:
        """Steps of a number that one record moves by `grid` steps; the threshold has as many steps as for means."""
        threshold = math.ceil(self.mechanism.threshold * len(self._holdout) * self.mechanism.grid)
        return Scaled(unit, threshold, Fraction(1), bounds)

    def asked(self, exact: Callable[[], int], scaled: Scaled, guess: Fraction, source: Origin, level: float) -> Answer:
        """Compare an exact answer in steps with a public guess, and release the guess or a noisy answer."""
        near = scaled.steps(guess)
        released, after = self._line.ask(lambda: Steps(exact(), near, scaled.threshold))
        return answered(self.mechanism, released, after, scaled, guess, source, level)

    # Models

    def score(
        self,
        model: Any,
        loss: Loss | AUC | str = "accuracy",
        *,
        guess: Number | None = None,
        row_by_row: bool = False,
        level: float = 0.95,
        train: tuple[Any, Any] | None = None,
    ) -> Answer:
        """Release a model's noisy score on the holdout: its accuracy, or another loss with bounds.

        It is compared with the score on the training set; for a model that fits that too well give a public `guess`,
        such as the mean of a cross-validation, or other records, `train=(X, y)`. Predictions are made for all rows at
        once; `row_by_row` makes them one by one.
        """
        level_of(level)
        if self._holdout.y is None:
            raise InputError("A score needs labels: open the holdout with y and y_train.")
        known = self._train if train is None else Records.of(*train, "training set")
        return scored(self, model, read_loss(loss), "row" if row_by_row else "all", known, guess, level)

    def scorer(self, loss: Loss | AUC | str = "accuracy") -> "Scorer":
        """Return a scorer for scikit-learn: `cross_val_score(model, X, y, scoring=holdout.scorer())`."""
        return Scorer(self, read_loss(loss))

    def splitter(self) -> "Splitter":
        """Return a splitter for scikit-learn, `cv=holdout.splitter()`: one split, which trains on all rows."""
        return Splitter()

    # One of its kind

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise PrivacyError("A holdout cannot be copied: use it in one process (n_jobs=1), or open it with a ledger.")

    def __repr__(self) -> str:
        left, n = f"{self.left} of {self.mechanism.budget} answers left", len(self._holdout)
        return f"<reusable holdout of {n:,} records: {left}, {self._stated}>"


def mechanism_of(
    records: int,
    budget: int,
    spend: Spend | None,
    threshold: Number | None,
    method: Method,
    noise: Number | None,
) -> Thresholdout:
    """The mechanism that the arguments of a holdout ask for."""
    if method not in get_args(Method):
        raise InputError('method must be "sparse vector", which compares with less noise, or "published".')
    if noise is not None:
        if method != "published" or spend is not None or threshold is None:
            raise InputError(
                'noise is the sigma of method="published" and comes with a threshold and without a spend: '
                "noise=0.01, threshold=0.04."
            )
        return Thresholdout.published(noise, budget=budget, records=records, threshold=threshold)
    return Thresholdout.calibrated(
        1 if spend is None else spend,
        budget=budget,
        records=records,
        threshold=threshold,
        published=method == "published",
    )


def _check_callable(phi: Any) -> None:
    if not callable(phi):
        raise InputError("Ask with a function of one record, such as lambda x, y: x[0] > 0, or use score(model).")
