"""Guilty twins: each has one fault, and is convicted by the adapter of its class, with a witness."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from tests.contracts.states import budgets, clients, counters, holdouts, table, watched
from tests.contracts.states.judging import Found

from noisette.holdout.machine import Machine as HoldoutMachine
from noisette.ledger import Memory
from noisette.local import GRR
from noisette.local.memo import Memo
from noisette.local.rappor import Rappor
from noisette.mechanisms import NumericSparse, SparseVector
from noisette.mechanisms.sparse_vector.stream import State
from noisette.privacy import Filter, Neighbours, Odometer, Pure
from noisette.privacy.sensitivity import Sensitivity
from noisette.releases.streams.alarms import Alarm, Watching
from noisette.releases.streams.opening import OpeningCounter
from noisette.releases.streams.pan_private import PanPrivateDensity
from noisette.releases.streams.tree_counter import TreeCounter
from noisette.releases.streams.windows import SlidingWindow

# States that are seized, watched and asked


class SmallerOfBoth(PanPrivateDensity):
    """It takes a release for a function of bits that were seen before."""

    def guarantee(self, *, releases: int = 1, intrusions: int = 1) -> Any:
        """The smaller of both for each release, and every intrusion at the same price."""
        each = min(self.epsilon, self.release_epsilon)
        return type(self.state_guarantee())(intrusions * self.epsilon + releases * each)


class Remembering(PanPrivateDensity):
    """It sets the bit of who appears."""

    def see(self, bits: Any, who: Any, rng: Any = None) -> Any:
        """Bits with ones where people appeared."""
        after = np.array(bits)
        after[np.asarray(who)] = True
        return after


class OneThreshold(Alarm):
    """Its threshold keeps its noise after an alarm."""

    def resume(self, state: Any) -> Any:
        """Go on from a state, with the same threshold for ever."""
        return KeepsOn(self, State(**state["comparing"]), int(state["statistic"]))


class KeepsOn(Watching):
    """A stream that is watched with one threshold."""

    def step(self, x: int, rng: Any = None) -> Any:
        """As before, and the noise of the threshold goes on."""
        noise = self._comparing.noise
        seen = super().step(x)
        self._comparing = replace(self._comparing, noise=noise)
        return seen


class Endless(SparseVector):
    """It states what one positive costs, and gives as many as it is asked for."""

    def guarantee(self, distance: Any = 1) -> Any:
        """That of one positive."""
        return SparseVector(self.threshold_scale, self.scale).guarantee(distance)


class Unpaid(NumericSparse):
    """It forgets to charge for the values."""

    def _run(self, d: Any, comparing: Any) -> Any:
        return comparing


class Uncounted(HoldoutMachine):
    """It does not count what it answered."""

    def step(self, state: Any, value: Any) -> Any:
        """As if nothing had been answered."""
        seen, after = super().step(state, value)
        return seen, replace(after, given=0)


# Sums


def forgotten_level() -> TreeCounter:
    """It states the move of one level less."""
    made = table.tree(fan=2)
    n = made.levels - 1
    return replace(made, moved=Sensitivity(n, n, 1, n, neighbours=Neighbours.ADD_REMOVE))


def mistaken(made: Any) -> Any:
    """It takes what is moved under add/remove for what is moved under replace."""
    s = made.moved
    return replace(made, moved=Sensitivity(s.l1, s.l2_squared, s.linf, s.l0, neighbours=Neighbours.REPLACE))


def low_threshold() -> OpeningCounter:
    """Its keys open too soon."""
    made = table.keys()
    return replace(made, threshold=made.threshold * 3 // 4)


def added_up() -> Iterator[Found]:
    """A stream that takes all rows so far for those that came in a step."""
    offer = table.days(Pure(1))
    return counters.publishing(offer, replace(offer.machine, pushed=True))


# Budgets


class Forgets(Filter):
    """It takes a cost like the last one for the same."""

    def _after(self, state: Any, charge: Any, cost: Any) -> Any:
        return state if charge == state.total else super()._after(state, charge, cost)


class RoundsDown(Odometer):
    """It shows whole tenths."""

    @property
    def epsilon(self) -> float:
        """Rounded down."""
        return math.floor(super().epsilon * 10) / 10


class Forgetful(Memory):
    """It writes a charge and forgets what it was worth, if it was small."""

    def _charged(self, draft: Any) -> Any:
        before = dict(self._where.accounts)
        entry = super()._charged(draft)
        if draft.guarantee.epsilon < Fraction(1, 2):
            self._where.accounts.update(before)
        return entry


# Devices


class Fresh(Memo):
    """It draws a report anew each day."""

    def client(self, value: Any, rng: Any = None) -> Any:
        """A new report, which is kept as if it were the first."""
        self.kept.pop(value, None)
        return super().client(value, rng)


class Redraws(Rappor):
    """It draws its permanent bits anew for each report: `permanent` is all that it keeps."""

    def permanent(self, value: int, rng: Any = None) -> Any:
        """The value itself, in place of the noisy bits."""
        return (value,)

    def instantaneous(self, kept: Any, rng: Any = None) -> Any:
        """A report of bits that are drawn anew."""
        return super().instantaneous(super().permanent(*kept, rng), rng)


COSTS = table.pure("0.4", "0.3")
UNPAID = {"value_scale": "1/16", "positives": 1}

TWINS: dict[str, Callable[[], Iterator[Found]]] = {
    "a release counts no more than the state": lambda: watched.pan_private(SmallerOfBoth(1, epsilon="1/10"), "AIR", 4),
    "a bit that only remembers": lambda: watched.pan_private(Remembering(1, epsilon="1/10"), longest=2),
    "an alarm that keeps its threshold": lambda: watched.alarm(OneThreshold(**vars(table.alarm())), (4,), 4),
    "one positive is paid for": lambda: watched.sparse(Endless("1/4", "1/4", positives=2)),
    "values that are not charged": lambda: watched.sparse(Unpaid("1/6", **UNPAID), 1, (1,)),
    "a holdout that does not count": lambda: holdouts.reusable(
        table.held(quiet=5), Uncounted, only=1, data=holdouts.BITS[2:]
    ),
    "a forgotten level": lambda: counters.counter(forgotten_level()),
    "a tree that takes replace for add/remove": lambda: counters.counter(mistaken(table.tree(fan=2))),
    "a square root that does": lambda: counters.counter(mistaken(table.root())),
    "buffers that do": lambda: counters.counter(mistaken(table.buffers())),
    "a window that is for one event": lambda: counters.window(SlidingWindow(replace(table.tree(), who=table.TWICE))),
    "keys that open too soon": lambda: counters.opening(low_threshold()),
    "rows so far that are added up": added_up,
    "a filter that forgets a charge": lambda: budgets.filtered(Forgets, Pure(1), COSTS),
    "an odometer that rounds down": lambda: budgets.metered(RoundsDown("1e-3"), table.pure("0.35"), 2),
    "a ledger that forgets small charges": lambda: budgets.in_memory(Forgetful, Pure(1), COSTS),
    "a device that draws anew": lambda: clients.memo(Fresh(GRR(1, domain=3), most=2), 2),
    "permanent bits that are drawn anew": lambda: clients.rappor(Redraws(**table.BLOOM), days=5, shown=False),
}
