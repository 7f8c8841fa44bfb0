"""Does `calibrated` keep the promise that it is asked for, at the sensitivity that it is asked for?

Promises of three kinds and the one that it states itself are asked for, at several distances. A mechanism may refuse
some in a sentence, but not all. What it makes must keep the promise by its own guarantee, which the other checks hold
to the law. With three quarters of its noise it must not, nor if it was calibrated for a smaller distance: else it is
calibrated for more than it was asked.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from noisette.audit.checks.interface import is_sentence, shown
from noisette.audit.finding import Effort, Finding, found
from noisette.audit.subject import Subject, scaled
from noisette.errors import InputError, NoisetteError
from noisette.mechanisms.calibration import keeps
from noisette.mechanisms.contract import Distance, Mechanism
from noisette.mechanisms.options import options_of
from noisette.privacy import ZCDP, Approx, Neighbours, Profile, Promise, Pure
from noisette.privacy.sensitivity import Sensitivity

__all__ = ["calibrated"]

_PROMISES: tuple[Promise, ...] = (Pure(1), Approx(1, "1e-6"), ZCDP("1/8"))
_MOVED = tuple(Sensitivity(6, 14, 3, 3, neighbours=relation) for relation in Neighbours)  # (1, 2, 3), all norms differ
_DISTANCES: tuple[Distance, ...] = (1, 2, 7, *_MOVED)
_LESS = Fraction(3, 4)  # of the noise
_SMALLER = {2: 1, 7: 5}

Asked = tuple[Promise, Distance]


def calibrated(m: Subject, _: Effort) -> Finding:
    """Calibrated for a promise and a sensitivity it keeps the promise, and clearly less noise would not."""
    kind: type[Mechanism] = type(m)
    options = {name: getattr(m, name) for name in options_of(kind) if hasattr(m, name)}
    faults, made = [], 0
    for asked in ((promise, distance) for promise in (*_PROMISES, *_own(m)) for distance in _DISTANCES):
        try:
            one = kind.calibrated(*asked, **options)
        except NoisetteError as refusal:
            faults += [] if is_sentence(str(refusal)) else [f"{_said(m, asked)} is refused by no sentence."]
        except Exception as error:
            faults.append(f"{_said(m, asked)} raises {type(error).__name__}.")
        else:
            made += 1
            faults += [*_faults(m, one, asked), *_wasted(m, options, asked)]
    faults += [] if made else ["Every promise is refused, expected that it keeps one."]
    sentences = (
        "Calibrated, it keeps what it is asked for.",
        "Calibrated, it does not keep what it is asked for, or wastes it.",
    )
    return found("calibrated", len(faults), 0, sentences, witness=lambda: shown(faults))


def _own(m: Subject) -> list[Promise]:
    """What it states itself, if that can be asked for: options such as `beta` may allow hardly anything else."""
    stated = m.guarantee(m.pairs()[0][2])
    return [] if isinstance(stated, Profile) or not stated.size else [stated.restated(None)]


def _said(m: Subject, asked: Asked) -> str:
    promise, distance = asked
    return f"{type(m).__name__}.calibrated({promise!r}, {distance!r})"


def _faults(m: Subject, one: Any, asked: Asked) -> Iterator[str]:
    kind: type[Mechanism] = type(m)
    promise, distance = asked
    if not keeps(one, promise, distance):
        yield f"{_said(m, asked)} is {one!r}, expected that it keeps {promise} there."
    less = None if m.sized_by in options_of(kind) else _with_less(one)
    if less is not None and keeps(less, promise, distance):
        yield f"{_said(m, asked)} keeps {promise} with {_LESS} of its noise as well, expected that it does not."


def _wasted(m: Subject, options: dict[str, Any], asked: Asked) -> Iterator[str]:
    """Calibrated for less than the distance, it keeps the promise there all the same."""
    promise, distance = asked
    near = _SMALLER.get(distance) if isinstance(distance, int) else None
    if near is not None and keeps(type(m).calibrated(promise, near, **options), promise, distance):
        yield f"{_said(m, (promise, near))} keeps {promise} at {distance} as well, expected that it does not."


def _with_less(one: Any) -> Any:
    """The same with less noise; None where that would be another mechanism."""
    try:
        return scaled(one, _LESS)
    except InputError:
        return None
