"""The options of a mechanism's `calibrated`, read off its signature, and the sentence for one that does not exist."""

from collections.abc import Iterable
from functools import lru_cache
from inspect import Parameter, signature
from typing import Any

from noisette.errors import InputError
from noisette.mechanisms.contract import Mechanism
from noisette.names import closest

__all__ = ["check_options", "options_of"]

_COMMON = ("epsilon", "delta", "rho", "sensitivity", "times")  # what `calibrate` takes for every mechanism


@lru_cache(maxsize=256)
def options_of(kind: type[Mechanism]) -> dict[str, bool]:
    """The options of `calibrated` by name, and whether each is needed.

    One that passes options on takes those of its base classes and of its constructor, except the relation, which
    promises and sensitivities name.

    >>> from noisette.mechanisms import Laplace, Quantile
    >>> options_of(Laplace), [name for name, needed in options_of(Quantile).items() if needed]
    ({'grid': False}, ['q', 'cells'])
    """
    found: dict[str, bool] = {}
    for base in (base for base in kind.__mro__ if "calibrated" in vars(base)):
        taken = list(signature(base.calibrated).parameters.values())  # type: ignore[attr-defined]
        found = _named(taken[2:]) | found
        if not any(p.kind is p.VAR_KEYWORD for p in taken):
            return found
    made = list(signature(kind).parameters.values())
    return {
        name: needed for name, needed in (_named(made) | found).items() if name not in ("neighbours", kind.sized_by)
    }


def _named(taken: Iterable[Parameter]) -> dict[str, bool]:
    return {p.name: p.default is p.empty for p in taken if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}


def check_options(kind: type[Mechanism], given: dict[str, Any]) -> None:
    """Refuse an option that does not exist, and a call without one that is needed."""
    known, right = options_of(kind), f"calibrate({kind.__name__}, …)"
    for name in (name for name in given if name not in known):
        every = [*known, *_COMMON]
        raise InputError(
            f"{right} takes {', '.join(every)} and no {name}: {closest(name, every, 'leave it out', listed=False)}"
        )
    missing = [name for name, needed in known.items() if needed and name not in given]
    if missing:
        raise InputError(f"{right} needs {' and '.join(missing)}: write {', '.join(f'{name}=…' for name in missing)}.")
