"""Sentences about rules of the house: each is read word by word, and its numbers are tried on the noise."""

import re
from fractions import Fraction

import pytest
from tests.contracts.test_sentences import CLAMPED, CLOSING, LIMITED, UNDECLARED
from tests.contracts.world import PLACES, PUBLIC, RULES, VISITS

import noisette as nz
from noisette.answers.figures import promise
from noisette.mechanisms import Threshold
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.frequency import MinimumFrequency
from noisette.query.measure import sensitivity

pytestmark = pytest.mark.slow_after(1)
NUMBER = r"([\d,]+)"
SUPPRESSED = re.compile(
    rf"By a rule of the policy, groups whose noisy number of (\w+)s is below {NUMBER} are "
    rf"(suppressed, and listed without numbers|left out): a group of fewer than {NUMBER} (\w+)s is shown with "
    r"probability at most (\S+), part of neither ε nor δ\."
)
PRICE = re.compile(
    r"That number (is bought for the rule|also decides about keys that are not declared): (.*) of what this question "
    r"spends\."
)
FREE = re.compile(r"The question releases that number anyway, so the rule costs nothing more\.")
ROUNDED = re.compile(
    r"Numbers are rounded to multiples of (\S+), and error bars are wider by (\S+) on each side for it\."
)
DIFFERENT = re.compile(
    rf"Groups whose noisy number of (\w+)s differs by fewer than {NUMBER} from that of an earlier question with one "
    r"condition more or less are suppressed\."
)
OTHERS = [LIMITED, CLAMPED, UNDECLARED, CLOSING]
PATTERNS = [SUPPRESSED, PRICE, FREE, ROUNDED, DIFFERENT, *OTHERS]
HOUSE = {"minimum_frequency": 7, "failure": "1e-5", "rounding": "1/2", "least_difference": 1234}

COUNTED = "SELECT ward, COUNT(DISTINCT patient) AS n FROM visits GROUP BY ward"
QUESTIONS = {
    "counted": (COUNTED, nz.Pure(1)),
    "bought": ("SELECT ward, SUM(age) AS s FROM visits GROUP BY ward", nz.Pure(1)),
    "bought, Gaussian": ("SELECT AVG(age) AS a, COUNT(*) AS n FROM visits", nz.ZCDP("0.01")),
    "unknown keys": ("SELECT illness, COUNT(*) AS n FROM visits GROUP BY illness", nz.Approx(1, "1e-6")),
}


def opened(relation=nz.Neighbours.ADD_REMOVE):
    budget = {"epsilon": 1000, "delta": "1e-4", "neighbours": str(relation)}
    rules = {"budget": budget, "tables": {"visits": RULES, "places": PUBLIC}, "rules": HOUSE}
    return nz.open({"visits": VISITS, "places": PLACES}, policy=rules)


def whole(text):
    return int(text.replace(",", ""))


@pytest.mark.parametrize("relation", list(nz.Neighbours), ids=str)
@pytest.mark.parametrize("name", QUESTIONS)
def test_every_sentence_is_known_and_true(name, relation):
    text, spend = QUESTIONS[name]
    data = opened(relation)
    found, answer = data.explain(text, spend=spend), data.ask(text, spend=spend)
    (sentences,) = found.caveats
    assert answer.caveats == sentences
    assert answer.statement.endswith(" ".join(sentences))
    read = {}
    for sentence in sentences:
        [pattern] = [pattern for pattern in PATTERNS if pattern.fullmatch(sentence)]
        read[pattern] = pattern.fullmatch(sentence).groups()
    assert {SUPPRESSED, ROUNDED, DIFFERENT, CLOSING} <= set(read)
    assert (FREE in read) == (name == "counted") == (PRICE not in read)
    assert read[ROUNDED] == ("0.5", "0.25")
    assert read[DIFFERENT] == ("patient", "1,234")
    design = found.offer.procedure.design
    _read_frequency(read[SUPPRESSED], design)
    if PRICE in read:
        assert read[PRICE][1] == promise(_price(design, relation))


def _read_frequency(said, design):
    """The threshold is the least with which the noise of this design keeps the failure."""
    unit, least, how, units, again, failure = said
    assert (unit, again) == ("patient", "patient")
    rule = MinimumFrequency(whole(units), Fraction(failure))
    assert (rule.units, rule.failure) == (7, Fraction(1, 10**5))
    if design.keys:
        made = design.keys[0]
        assert isinstance(made, Threshold)
        assert (made.threshold, how) == (whole(least), "left out")
        assert made.chance(rule.units - 1) <= float(rule.failure)
        return
    noise = design.noise[0, design.tasks[0].deciding]
    chances = [rule.chance(noise, rule.units - 1, t) for t in (whole(least), whole(least) - 1)]
    assert chances[0] <= rule.failure < chances[1]
    assert how.startswith("suppressed")


def _price(design, relation):
    if design.keys:
        return design.keys[0].guarantee(neighbours=relation)
    task = design.tasks[0]
    moved = sensitivity(task.deciding, task.part, relation)
    assert isinstance(moved, Sensitivity)
    return design.noise[0, task.deciding].guarantee(moved)
