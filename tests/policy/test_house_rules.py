"""Rules of the house in a policy: written and read again, and every mistake names its place."""

import tomllib
from fractions import Fraction

import pytest
from tests.curator.ruled import policy

from noisette.errors import InputError
from noisette.policy.house_rules import HouseRules, beside, house_rules, within
from noisette.policy.policy import read_policy
from noisette.privacy import Approx, as_promise
from noisette.query.frequency import MinimumFrequency


def test_rules_are_written_and_read_again():
    given = {
        "minimum_frequency": 10,
        "failure": "1e-7",
        "rounding": "1/2",
        "largest_spend": "0.5,1e-8",
        "approval_above": "rho=0.01",
        "least_difference": 4,
    }
    made = read_policy({"budget": {"epsilon": 1}, **policy({"code": {"group": False}}, **given)})
    assert made.rules.frequency == MinimumFrequency(10, Fraction(1, 10**7))
    text = made.to_toml()
    assert read_policy(tomllib.loads(text)) == made
    assert "group = false" in text
    assert house_rules({}) == HouseRules()
    assert "[rules]" not in read_policy({"budget": {"epsilon": 1}}).to_toml()


MISTAKES = [
    ({"minimum_frequence": 3}, "rules.minimum_frequence in the policy is unknown: did you mean minimum_frequency?"),
    ({"minimum_frequency": 0}, "rules.minimum_frequency in the policy must be a whole number"),
    ({"minimum_frequency": 2, "failure": 0}, "rules.failure in the policy must lie between"),
    ({"minimum_frequency": 2, "failure": "x"}, "rules.failure in the policy must be"),
    ({"failure": "1e-6"}, "rules.failure in the policy belongs to minimum_frequency"),
    ({"rounding": 0}, "rules.rounding in the policy must lie between"),
    ({"rounding": float("nan")}, "rules.rounding in the policy must be"),
    ({"largest_spend": 0}, "rules.largest_spend in the policy must be above 0"),
    ({"approval_above": "much"}, "rules.approval_above in the policy must be an epsilon"),
    ({"least_difference": 5}, "rules.least_difference in the policy reads the numbers of minimum_frequency"),
]


@pytest.mark.parametrize(("given", "sentence"), MISTAKES, ids=lambda part: str(part)[:40])
def test_mistakes_name_their_place(given, sentence):
    with pytest.raises(InputError, match=sentence):
        read_policy({"budget": {"epsilon": 1}, "rules": given})


def test_rules_are_a_section():
    with pytest.raises(InputError, match=r"rules in the policy must be a section"):
        read_policy({"budget": {"epsilon": 1}, "rules": [1]})


# Limits of what one question spends

LIMITS = [
    ("0.5", 0.5, True),
    ("0.5", "0.51", False),
    ("0.5", "0.5,1e-6", True),  # a thousandth of the budget's delta
    ("0.5", "0.1,1.001e-6", False),
    ("0.5,1e-8", "0.5,1e-6", False),
    ("0.5,1e-8", "0.4", True),
    ("0.5", "rho=0.0001", False),
    ("0.5,1e-6", "rho=0.001", True),
    ("0.5,1e-6", "rho=0.01", False),
    ("0.5,1e-6", "rho=0.1", False),
    ("rho=0.01", "0.14", True),
    ("rho=0.01", "0.15", False),
    ("rho=0.01", "0.01,1e-9", False),
    ("rho=0.01", "rho=0.01", True),
    ("rho=0.01", "rho=0.011", False),
]


@pytest.mark.parametrize(("limit", "spend", "fits"), LIMITS)
def test_a_spend_is_within_a_limit(limit, spend, fits):
    assert within(as_promise(spend), as_promise(limit), beside(Approx(100, "1e-3"))) is fits
