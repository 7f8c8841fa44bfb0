"""Devices that keep a report, or a permanent noise, and send for many days: the exact law of all that they send."""

import itertools
from collections.abc import Iterator
from typing import Any

from tests.contracts.states.draws import Machine, path, words
from tests.contracts.states.judging import Found

from noisette.errors import InputError
from noisette.local.memo import Memo
from noisette.local.rappor import Rappor


def memo(device: Memo, days: int = 3) -> Iterator[Found]:
    """Values day by day; the neighbour has the same days with its values renamed, as the promise says."""
    made, values = type(device), list(device.protocol.values())

    def step(kept: tuple[Any, ...], value: Any) -> tuple[Any, Any]:
        one = made(device.protocol, device.most, dict(kept))
        try:
            sent = one.client(value, path())
        except InputError:
            return "silent", kept
        return sent, tuple(sorted(one.kept.items()))

    machine = Machine(lambda: (), step)
    for events in words(values, days):
        own = sorted(set(events))
        constant = len(own) == 1
        stated = device.guarantee_of_value().epsilon if constant else device.epsilon_forever()
        for names in itertools.permutations(values, len(own)):
            renamed = dict(zip(own, names, strict=True))
            others = tuple(renamed[value] for value in events)
            yield Found(events, others, float(stated), machine.loss(events, others))


def rappor(device: Rappor, days: int = 3, *, shown: bool = True) -> Iterator[Found]:
    """One value for ever: the first report, several ones, and in the end, if `shown`, the permanent bits themselves."""
    one, other = values = (0, 1)

    def step(kept: Any, event: Any) -> tuple[Any, Any]:
        kind, value = event
        if kept is None:
            kept = device.permanent(value, path())
        return (kept if kind == "kept" else device.instantaneous(kept, path())), kept

    machine = Machine(lambda: None, step)
    for events in (("sent",) * day for day in range(1, days + 1)):
        loss = machine.loss(*([(kind, value) for kind in events] for value in values))
        stated = device.epsilon if len(events) == 1 else device.guarantee_forever().epsilon
        yield Found((one, *events), (other, *events), float(stated), loss)
    if shown:
        loss = machine.loss(*([("kept", value)] for value in values))
        yield Found((one, "kept"), (other, "kept"), float(device.guarantee_forever().epsilon), loss)
