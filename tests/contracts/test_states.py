"""Everything that keeps a state and states a guarantee keeps it, over all short histories of its events.

The classes are found by walking the package; `states/table.py` has a row for each of them, which says how its events
look. A row runs the class's own methods: on all draws with their probabilities, or with its noise recorded where these
are too many. The loss between all neighbours is compared with what is stated: never above it, and near it.
"""

import pytest
from tests.contracts.states.discovery import found, is_subject
from tests.contracts.states.judging import Convicted, judged
from tests.contracts.states.loudness import quieter
from tests.contracts.states.table import ROWS
from tests.contracts.states.twins import TWINS
from tests.contracts.states.watched import seizable

from noisette.errors import InputError, PrivacyError
from noisette.holdout.leaderboard import Ladder
from noisette.releases.streams.pan_private import PanPrivateDensity

STATELESS = {Ladder}
"""Classes that say that they have no guarantee: asking for one is an error."""


def rows():
    for cls, some in ROWS.items():
        for name, row in some.items():
            yield pytest.param(cls, row, id=f"{cls.__name__}-{name}", marks=[pytest.mark.slow] if row.slow else [])


def missing(classes):
    """A sentence for each class that no row is about."""
    return [
        f"{cls.__module__}.{cls.__name__} keeps a state and states a guarantee: add a row to tests/contracts/states/"
        "table.py that yields what is stated and what is true of its events."
        for cls in classes
        if cls not in ROWS and cls not in STATELESS
    ]


def test_every_class_that_keeps_a_state_has_a_row():
    assert missing(found()) == []
    assert set(ROWS) | STATELESS <= set(found())


@pytest.mark.parametrize(("cls", "row"), list(rows()))
def test_what_is_stated_holds_over_all_short_histories(cls, row):
    judged(cls.__name__, row.found(), row.reached)


@pytest.mark.parametrize(("cls", "row"), list(rows()))
def test_every_row_convicts_less_noise(cls, row):
    with quieter(0.7 * row.reached), pytest.raises(Convicted, match="the truth is at least"):
        judged(cls.__name__, row.found(), row.reached)


@pytest.mark.parametrize("name", TWINS)
def test_every_twin_is_convicted_with_a_witness(name):
    with pytest.raises(Convicted, match=r"states .* for the events .*, and the truth is at least .* neighbour"):
        judged(name, TWINS[name](), 0)


def test_an_adapter_that_sees_nothing_is_convicted():
    cls = PanPrivateDensity
    blind = (type(one)(one.events, one.neighbour, one.stated, 0.0) for one in ROWS[cls]["default"].found())
    with pytest.raises(Convicted, match="its adapter does not see"):
        judged(cls.__name__, blind, 0.5)


# Discovery


class Tally:
    """Somebody's new class: it changes when it is asked, and says what it guarantees."""

    def __init__(self):
        self.asked = 0

    def guarantee(self):
        return 1

    def ask(self):
        self.asked += 1


class Wordless(Tally):
    guarantee = None

    def ask(self):
        return 0


def test_a_new_class_is_found_and_asked_for_a_row():
    assert is_subject(Tally)
    assert not is_subject(Wordless)
    assert missing([Tally]) == [
        f"{__name__}.Tally keeps a state and states a guarantee: add a row to tests/contracts/states/table.py that "
        "yields what is stated and what is true of its events."
    ]


def test_a_ladder_has_no_guarantee():
    with pytest.raises(PrivacyError, match="no epsilon"):
        _ = Ladder([0, 1], step="0.1").guarantee


def test_every_counter_is_tried_under_replace_by_a_quick_row():
    """A counter that takes replace for add/remove is wrong by a factor of two, and nothing else shows it."""
    counters = [cls for cls in found() if ".streams." in cls.__module__ and hasattr(cls, "deviations")]
    assert {cls.__name__ for cls in counters} >= {
        "TreeCounter",
        "SquareRootCounter",
        "BufferedCounter",
        "SlidingWindow",
    }
    assert [
        cls for cls in counters if not any("replace" in name and not row.slow for name, row in ROWS[cls].items())
    ] == []


# A state that is seized twice


def test_a_second_intrusion_tells_who_appeared_and_is_refused():
    density = PanPrivateDensity(1, epsilon=1)
    assert seizable(density).loss("IAI", "I-I") > 30
    with pytest.raises(InputError, match=r"begin\(\)"):
        density.guarantee(releases=0, intrusions=2)
