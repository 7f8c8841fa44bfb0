import math

import pytest

from noisette import local
from noisette.errors import InputError


@pytest.mark.parametrize(
    ("domain", "epsilon", "bits", "chosen"),
    [
        (2, 1, None, local.GRR(1, domain=2)),
        (16, 1, None, local.SubsetSelection(1, domain=16)),
        (16, 4, None, local.GRR(4, domain=16)),
        (1024, 1, None, local.AffineSubsets(1, domain=1024)),
        (253, 4, None, local.SubsetSelection(4, domain=253)),
        (1000, 1, 32, local.AffineSubsets(1, domain=1000)),
        (1000, 1, 11, local.ProjectiveGeometry(1, domain=1000)),
        (100_000, 1, 64, local.ProjectiveGeometry(1, domain=100_000)),
        (10**9, 1, None, local.OLH(1, domain=10**9)),
        (100_000, 1, 20, local.ProjectiveGeometry(1, domain=100_000)),
    ],
)
def test_the_least_variance_wins(domain, epsilon, bits, chosen):
    found = local.choose(domain, epsilon, bits)
    assert found.protocol == chosen
    assert found.candidates[0].protocol == chosen
    first, *others = [c.variance for c in found.candidates]
    assert others == sorted(others)
    assert first <= 1.001 * min([first, *others])
    assert bits is None or all(c.bits <= bits for c in found.candidates)
    assert found.why.startswith(found.candidates[0].name)
    assert found.why.endswith(".")
    assert str(found).endswith(found.why)


@pytest.mark.parametrize("epsilon", ["1.6", 2, 4])
@pytest.mark.parametrize("domain", [3, 100, 30_000])
def test_plain_hadamard_is_no_candidate_above_one_and_a_half(domain, epsilon):
    for bits in (None, (domain + 1).bit_length() + 3):
        assert all("plain" not in c.name for c in local.choose(domain, epsilon, bits).candidates)


def test_plain_hadamard_may_be_all_that_is_short_enough():
    found = local.choose(1000, "1.2", 10)
    assert {c.name for c in found.candidates} >= {"HadamardResponse, plain", "GRR"}
    assert "at most 10 bits" in found.why


def test_randomized_response_is_better_than_oue_below_three_times_the_odds():
    for epsilon, switch in ((1, 10), (2, 24)):  # 3 e^epsilon + 2 is 10.15 and 24.17
        assert local.GRR(epsilon, domain=switch).variance() < local.OUE(epsilon, domain=switch).variance()
        assert local.GRR(epsilon, domain=switch + 1).variance() > local.OUE(epsilon, domain=switch + 1).variance()


def test_lines_for_charts():
    assert {name: len(line) for name, line in local.compare([1000], [0.5, 1, 2]).items()}["OLH"] == 3
    assert [x for x, _ in local.compare([10, 100], [1])["SUE"]] == [10, 100]
    small, large = local.compare([10, 10**6], [1])["SUE"]
    assert small[1] > 0
    assert math.isnan(large[1])  # its reports would have a million bits


def test_no_line_goes_below_the_least_possible_variance():
    """Where a protocol cannot be used, a straight line through the gap would go below."""
    lines = local.compare([1000], [4.5 + i / 4 for i in range(15)])
    best = [variance for _, variance in lines["SubsetSelection"]]
    for name, line in lines.items():
        assert all(math.isnan(y) or y >= 0.999 * least for (_, y), least in zip(line, best, strict=True)), name
    assert any(math.isnan(y) for _, y in lines["ProjectiveGeometry"])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: local.choose(1, 1), "domain_size must be a whole number, at least 2"),
        (lambda: local.choose(10, 0), "epsilon must be above 0"),
        (lambda: local.choose(10, 101), "epsilon must be at most 100"),
        (lambda: local.compare([10], [1, 0]), "epsilon must be above 0"),
        (lambda: local.compare([10, 1], [1]), "domain_size must be a whole number, at least 2"),
        (lambda: local.choose(1000, 1, 3), "allow at least 10 bits"),
        (lambda: local.choose(2**32, 1), "hash longer values to 32 bits"),
        (lambda: local.compare([1, 2], [1, 2]), "one domain size and many epsilons"),
    ],
)
def test_bad_input_is_refused(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()
