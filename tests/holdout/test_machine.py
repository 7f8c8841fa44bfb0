"""What a holdout releases comes from its mechanisms: an answer of its own has noise of its own."""

import pytest

from noisette.holdout.machine import Machine, Steps
from noisette.holdout.thresholdout import Thresholdout


@pytest.mark.parametrize(("spend", "published"), [("1", True), ("1", False), ("rho=0.1", False)])
def test_two_answers_to_one_question_differ(spend, published):
    mechanism = Thresholdout.calibrated(spend, budget=200, records=10**6, threshold="1/2", published=published)
    machine, far = Machine(mechanism), Steps(10**12, 0, 0)
    given = {machine.step(machine.begin(), far)[0].steps for _ in range(64)}
    assert len(given) > 32  # fails with p < 1e-12: the noise has thousands of values that are about as likely
