"""Every draw of the package's own methods, decided by a path: all paths together are the exact law of what is seen.

Samplers are taken at their stated laws, which the contract of the mechanisms compares with their coins. A draw takes
each value whose probability is above `LEAST`; what is left out is known, so that a loss is bounded from below.

Vocabulary: `path` the outcome of each draw so far · a `machine` goes from state to state, event by event.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeAlias
from unittest import mock

import numpy as np
from tests.contracts.states.loudness import part, surer

from noisette.exact import samplers
from noisette.exact.random import SystemRandom
from noisette.laws import DiscreteLaplace
from noisette.mechanisms.sparse_vector import sparse_vector
from noisette.releases.streams import pan_private

LEAST = 1e-14
FAR = 400

Law: TypeAlias = tuple[tuple[Any, float], ...]
Laws: TypeAlias = dict[Hashable, float]


class _UnlikelyError(Exception):
    """The path has become too unlikely to follow."""


class Path:
    """One run: repeats its first choices, then takes the first value of each law. It serves as the coins, too."""

    secure = False

    def __init__(self, choices: list[tuple[int, int]]) -> None:
        self.choices, self.at, self.mass = choices, 0, 1.0

    def pick(self, law: Law) -> Any:
        """One value of a law."""
        if self.at == len(self.choices):
            self.choices.append((0, len(law)))
        value, chance = law[self.choices[self.at][0]]
        self.at, self.mass = self.at + 1, self.mass * chance
        if self.mass < LEAST:
            raise _UnlikelyError
        return value

    def flip(self, numerator: int, denominator: int) -> bool:
        """A coin."""
        return bool(self.pick(coin(surer(numerator / denominator))))

    def below(self, n: int) -> int:
        """One of n numbers."""
        return int(self.pick(tuple((i, 1 / n) for i in range(n))))


_PATHS: list[Path] = []  # the one that is walked


def path() -> Any:
    """The coins of methods that ask for them."""
    return _PATHS[0]


def every(attempt: Callable[[Path], Any]) -> Laws:
    """The probability of each value of an attempt, over all paths."""
    found: Laws = defaultdict(float)
    choices: list[tuple[int, int]] = []
    while True:
        _PATHS[:] = [Path(choices)]
        try:
            value = attempt(_PATHS[0])
            found[value] += _PATHS[0].mass
        except _UnlikelyError:
            pass
        while choices and choices[-1][0] + 1 == choices[-1][1]:
            choices.pop()
        if not choices:
            return dict(found)
        choices[-1] = (choices[-1][0] + 1, choices[-1][1])


def coin(chance: float) -> Law:
    """True with a chance."""
    return tuple((value, p) for value, p in ((True, chance), (False, 1 - chance)) if p > 0)


def values(law: Any) -> Law:
    """The values of a law of whole numbers that are likely enough."""
    return _values(law if part() == 1 else replace(law, scale=law.scale * part()))


@lru_cache
def _values(law: Any) -> Law:
    z = np.arange(-FAR, FAR + 1)
    return tuple((int(v), float(p)) for v, p in zip(z, law.pmf(z), strict=True) if p > LEAST)


def _sample(law: Any, size: Any = None, rng: Any = None) -> Any:
    """What takes the place of a law's sampler."""
    if size is None:
        return _PATHS[0].pick(values(law))
    shape = (size,) if isinstance(size, int) else tuple(size)
    return np.array([_PATHS[0].pick(values(law)) for _ in range(math.prod(shape))], np.int64).reshape(shape)


def _coins(g: Any, size: int, *, rng: Any = None) -> Any:
    """What takes the place of many coins of randomized response."""
    return np.array([_coin(g) for _ in range(size)], bool)


def _coin(g: Any, weight: Any = 1, rng: Any = None) -> bool:
    return bool(_PATHS[0].pick(coin(1 / (1 + float(weight) * math.exp(-g / part())))))


def _undecided(*_: Any) -> Any:
    raise AssertionError("This draw is decided by nothing: let draws.py take the place of its sampler.")


@contextmanager
def decided() -> Iterator[None]:
    """No coin comes from the system."""
    with ExitStack() as stack:
        for name in ("bits", "below", "flip", "words"):
            stack.enter_context(mock.patch.object(SystemRandom, name, _undecided))
        yield


@contextmanager
def enumerated() -> Iterator[None]:
    """Draws are decided by the path that `every` walks."""
    with decided(), ExitStack() as stack:
        for place, name, instead in (
            (DiscreteLaplace, "sample", _sample),
            (sparse_vector._OneSided, "sample", _sample),
            (pan_private, "logistic", _coins),
            (samplers, "logistic", _coin),
        ):
            stack.enter_context(mock.patch.object(place, name, instead))
        stack.enter_context(mock.patch("secrets.token_hex", lambda n: "0" * 2 * n))
        yield


# Machines


class Machine:
    """What is seen of events: `begin()` is a state, `step(state, event)` what is seen and the next state."""

    def __init__(self, begin: Callable[[], Any], step: Callable[[Any, Any], tuple[Any, Any]]) -> None:
        self._begin, self._step = begin, lru_cache(maxsize=None)(self._stepped(step))
        self._after = lru_cache(maxsize=None)(self._reached)

    @staticmethod
    def _stepped(step: Callable[[Any, Any], tuple[Any, Any]]) -> Callable[[Any, Any], Laws]:
        return lambda state, event: every(lambda _: step(state, event))

    def _reached(self, events: tuple[Any, ...]) -> Laws:
        """The law of all that was seen, with the state after it."""
        if not events:
            return {((), state): mass for state, mass in every(lambda _: self._begin()).items()}
        found: Laws = defaultdict(float)
        for (seen, state), mass in self._after(events[:-1]).items():  # type: ignore[misc]
            for (one, then), chance in self._step(state, events[-1]).items():  # type: ignore[misc]
                found[(*seen, one), then] += mass * chance
        return dict(found)

    def law(self, events: Sequence[Any]) -> Laws:
        """The law of all that is seen."""
        found: Laws = defaultdict(float)
        with enumerated():
            for (seen, _), mass in self._after(tuple(events)).items():  # type: ignore[misc]
                found[seen] += mass
        return dict(found)

    def loss(self, events: Sequence[Any], others: Sequence[Any]) -> float:
        """A privacy loss of two histories that is not above the true one, and near it: the larger of both ways."""
        one, two = self.law(events), self.law(others)
        return max(_loss(one, two), _loss(two, one))


def _loss(one: Laws, two: Laws) -> float:
    missing = max(0.0, 1 - math.fsum(two.values())) + 1e-15
    return max(math.log(p / (two.get(seen, 0.0) + missing)) for seen, p in one.items() if p > 0)


def words(letters: Sequence[Any], longest: int) -> Iterator[tuple[Any, ...]]:
    """All sequences of up to that many events."""
    for length in range(1, longest + 1):
        yield from itertools.product(letters, repeat=length)
