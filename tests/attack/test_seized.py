"""States that may be seized: what convicted once, all short histories at random prices, and guilty twins."""

import pytest
from tests.attack.holes import SEIZED
from tests.attack.seized import histories, seized
from tests.attack.trial import Convicted
from tests.contracts.states.twins import Remembering, SmallerOfBoth
from tests.contracts.states.watched import seizable

from noisette.releases.streams.pan_private import PanPrivateDensity


@pytest.mark.parametrize("name", SEIZED)
def test_what_convicted_once(name):
    assert seized(*SEIZED[name])["questions"] == 1


@pytest.mark.parametrize("name", SEIZED)
def test_the_smaller_of_both_is_convicted(name):
    """The formula that was once stated, on the histories that it was convicted by."""
    density, events = SEIZED[name]
    twin = SmallerOfBoth(1, epsilon=density.epsilon, release_epsilon=density.release_epsilon)
    with pytest.raises(Convicted, match=f"{events} tells"):
        seized(twin, events)


def test_bits_that_only_remember_are_convicted():
    with pytest.raises(Convicted, match="AI tells"):
        seized(Remembering(1, epsilon=1), "AI")


@pytest.mark.parametrize(
    ("epsilon", "release_epsilon", "events", "true"),
    [("1", 10, "IAR", 9.69), ("1", 3, "IAR", 2.70), ("1/10", 1, "RRAI", 1.571), ("1/10", 1, "IAR", 0.643),
     ("1", 5, "RAR", 4.38), ("1/2", 2, "RARAR", 1.59)],
)  # fmt: skip
def test_losses_are_those_that_were_found_by_another_way(epsilon, release_epsilon, events, true):
    density = PanPrivateDensity(1, epsilon=epsilon, release_epsilon=release_epsilon)
    assert seizable(density).loss(events, events.replace("A", "-")) == pytest.approx(true, abs=0.006)


@pytest.mark.parametrize("seed", range(3))
def test_all_short_histories_at_random_prices(seed):
    assert histories(seed, longest=4)["answered"] > 50
