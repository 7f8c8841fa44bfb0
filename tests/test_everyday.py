"""Every one of the forty everyday questions is answered here, with the number that was asked for."""

import pytest
from benchmarks.everyday.__main__ import truths, verdict
from benchmarks.everyday.ours import answers


@pytest.mark.slow
def test_all_forty_are_answered():
    truth = truths()
    found = {what: verdict(answer, truth[what]) for what, answer in answers().items()}
    assert [what for what, said in found.items() if said != "**yes**"] == []
    assert len(found) == 40
