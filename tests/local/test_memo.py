"""Memoisation: equal values give equal reports, and all reports of k values together cost k epsilon, exactly."""

from collections import Counter
from fractions import Fraction
from itertools import permutations, product

import pytest

from noisette import local
from noisette.errors import InputError
from noisette.exact.rational import exp_down, exp_up
from noisette.privacy import Neighbours, Pure

PROTOCOL = local.GRR(1, domain=3)


def sent(values, fresh=False):
    """The exact law of all reports that a device sends for a sequence of values."""
    law, distinct = Counter(), list(values) if fresh else sorted(set(values))
    for drawn in product(PROTOCOL.reports(), repeat=len(distinct)):
        chance = Fraction(1)
        for report, value in zip(drawn, distinct, strict=True):
            chance *= PROTOCOL.likelihood(report, value)
        kept = dict(zip(distinct, drawn, strict=True))
        law[drawn if fresh else tuple(kept[v] for v in values)] += chance
    return law


def worst_ratio(pattern, fresh=False):
    """The largest ratio between sequences that are equal up to a renaming of their values."""
    sequences = [tuple(names[i] for i in pattern) for names in permutations(range(3), len(set(pattern)))]
    laws = [sent(values, fresh) for values in sequences]
    return max(a[y] / b[y] for a in laws for b in laws for y in a if a[y] and b[y])


@pytest.mark.parametrize(("pattern", "k"), [((0, 0, 0, 0), 1), ((0, 1, 0, 1), 2)])
def test_all_reports_cost_epsilon_for_each_distinct_value(pattern, k):
    ratio = worst_ratio(pattern)
    assert exp_down(Fraction(k)) * (1 - Fraction(1, 2**60)) <= ratio <= exp_up(Fraction(k))
    assert ratio <= exp_up(local.Memo(PROTOCOL, most=k).epsilon_forever())


def test_a_device_without_memory_is_convicted():
    assert worst_ratio((0, 0, 0, 0), fresh=True) > exp_up(Fraction(3))


def test_a_change_of_value_is_not_hidden():
    """The stated limit: a constant sequence never sends two different reports."""
    assert set(map(len, map(set, sent((0, 0))))) == {1}
    assert max(map(len, map(set, sent((0, 1))))) == 2


def test_equal_values_give_equal_reports_and_kept_ones_survive():
    phone = local.Memo(local.SquareWave(1), most=5)
    days = [0.1, 0.9, 0.1, 0.1, 0.9]
    reports = [phone.client(v) for v in days]
    assert reports[0] == reports[2] == reports[3]
    assert reports[1] == reports[4]
    again = local.Memo(local.SquareWave(1), most=5, kept=dict(phone.kept))
    assert [again.client(v) for v in days] == reports
    assert phone.spent() == 2
    assert phone.epsilon_forever() == 5
    assert phone.guarantee_of_value() == Pure(1, neighbours=Neighbours.REPLACE)
    vectors = local.Memo(local.SplitQueries(1, queries=2), most=1)
    assert vectors.client([0, 1]) == vectors.client((0, 1))


def test_bad_input_is_refused_and_not_kept():
    phone = local.Memo(PROTOCOL, most=1)
    with pytest.raises(InputError, match="outside the domain"):
        phone.client(7)
    assert phone.kept == {}
    phone.client(1)
    with pytest.raises(InputError, match="has reported 1 distinct values"):
        phone.client(2)
    assert list(phone.kept) == [1]
    with pytest.raises(InputError, match="most must be a whole number"):
        local.Memo(PROTOCOL, most=0)
    with pytest.raises(InputError, match="more values than most allows"):
        local.Memo(PROTOCOL, most=1, kept={0: 0, 1: 1})
