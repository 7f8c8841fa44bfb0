import pytest

from noisette import attacks


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("demo", "phrases"),
    [
        (attacks.differencing_demo, ["the attack says 5: revealed", "1-DP spent", "refused an answer", "above 23%"]),
        (attacks.averaging_demo, ["10,000 answers average to", "10 answers average to", "5-DP spent"]),
        (attacks.reconstruction_demo, ["100.0% of 200 bits", "1-DP under replace spent", "more than 73%"]),
        (attacks.tracing_demo, ["none           100%", "0.02-zCDP", "epsilon 0.90"]),
    ],
)
def test_each_story_has_its_numbers(demo, phrases):
    story = demo()
    assert [phrase for phrase in phrases if phrase not in story] == []
    assert max(map(len, story.splitlines())) <= 120
