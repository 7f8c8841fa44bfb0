"""Heavy hitters: frequent values of huge domains are found, absent ones are not, and collectors keep sorted reports."""

from fractions import Fraction

import numpy as np
import pytest
from tests.contracts.test_local import Twin, drawn_fit, privacy_faults
from tests.goodness import ALPHA

from noisette import local
from noisette.errors import InputError
from noisette.local.heavy_hitters import _hashed, examples
from noisette.privacy import Pure

WORDS = {"hello": 9000, "world": 7000, "privacy": 6000}


def test_texts_are_found_in_a_domain_of_56_bits():
    tree = local.PrefixTree(4, length=56, step=8)
    codes = [local.code_of_text(word) for word, n in WORDS.items() for _ in range(n)]
    rare = [local.code_of_text(f"w{i}") for i in range(6000)]
    found = tree.estimate(tree.clients(codes + rare))
    assert [local.text_of_code(code) for code in found.values] == list(WORDS)  # the coins are fixed
    low, high = found.interval(0.9999)
    truth = np.array(list(WORDS.values())) / (len(codes) + len(rare))
    assert ((low <= truth) & (truth <= high)).all()
    assert (np.abs(found.shares - truth) < 5 * found.variance() ** 0.5).all()
    assert truth.min() > tree.detectable(len(codes) + len(rare))


class Lax(local.PrefixTree):
    """A tree whose threshold is the middle of the noise."""

    def _tail(self, candidates):
        return 0.49


def rounds_with_absent_values(tree):
    """In how many of 20 surveys a value is listed that nobody has."""
    found = [tree.estimate(tree.clients([7] * 2000)).values.tolist() for _ in range(20)]
    return sum(set(values) > {7} for values in found)


@pytest.mark.slow
def test_values_that_nobody_has_are_not_listed_and_a_lax_threshold_is_convicted():
    assert (
        rounds_with_absent_values(local.PrefixTree(2, length=12, step=4)) <= 5
    )  # one is expected; the coins are fixed
    assert rounds_with_absent_values(Lax(2, length=12, step=4)) > 15


def test_the_public_hash_rarely_collides():
    assert len(np.unique(_hashed(np.arange(20_000)))) == 20_000
    assert _hashed(np.arange(1000)).max() < 4_294_967_291


@pytest.mark.slow
@pytest.mark.parametrize("protocol", examples, ids=repr)
def test_a_bolder_claim_is_convicted(protocol):
    modest = Twin(protocol, guarantee=lambda: Pure(protocol.epsilon * Fraction(999, 1000)))
    assert privacy_faults(modest) == ["not private"]


def test_louder_clients_are_convicted():
    protocol = examples[1]
    loud = Twin(protocol, clients=lambda v, rng: local.PrefixTree(3, length=2, step=1).clients(v, rng))
    assert drawn_fit(loud, 3, 20_000) < ALPHA


def test_without_reports_on_a_level_nothing_is_found():
    tree = local.PrefixTree(1, length=4, step=2)
    assert tree.estimate([[0, 0, 0, 0]]).values.size == 0


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: local.PrefixTree(1, length=57), "length must be at most 56"),
        (lambda: local.PrefixTree(1, length=8, step=13), "step must be at most 12"),
        (lambda: local.PrefixTree(1, length=8, beta=1), "beta must be below 1"),
        (lambda: local.PrefixTree(1, length=8).client(256), "outside the domain"),
        (lambda: local.PrefixTree(1, length=4, step=2).estimate([[0, 400, 0, 0]]), "These are not reports of this"),
    ],
)
def test_bad_input_is_refused(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()
