"""A charge that is none is refused with one sentence, by every ledger, and nothing is written."""

import math

import pytest

from noisette.errors import InputError, NoisetteError, PrivacyError
from noisette.ledger import Memory, open_ledger
from noisette.privacy import Pure

HALF = Pure("1/2")


@pytest.fixture(params=["memory", "book"])
def ledger(request, tmp_path):
    if request.param == "memory":
        yield Memory(Pure(1))
        return
    book = open_ledger(tmp_path / "x.ledger", budget=Pure(1))
    yield book
    book.verify()
    book.close()


class Rude:
    """Something that fails whatever is done to it."""

    def __getattr__(self, name):
        raise RuntimeError("rude")

    def __iter__(self):
        raise RuntimeError("rude")


LOOP = {}
LOOP["self"] = LOOP
DEEP = {}
for _ in range(100_000):
    DEEP = {"in": DEEP}
BAD = [
    *(
        ("q", cost, [], {})
        for cost in (None, 0.5, 1, "1/2", math.nan, [], {}, Pure, object(), Rude(), b"1", HALF.epsilon)
    ),
    *((question, HALF, [], {}) for question in (None, 5, b"q", ["q"], Rude())),
    *(
        ("q", HALF, parts, {})
        for parts in (None, 5, "ab", {"a": 1}, [1], ["a"], [None], [[("a", 1)]], Rude(), iter([]))
    ),
    *(("q", HALF, [part], {}) for part in ({"a": math.nan}, {"a": math.inf}, {1: 2, "a": 3}, LOOP, {(1, 2): 3}, DEEP)),
    *(("q", HALF, [], {"key": key}) for key in ("", 5, "a\n", "a\0", "x" * 201, b"k", Rude(), [])),
    *(("q", HALF, [], {"analyst": who}) for who in ("", 5, "a\n", "x" * 201, b"ana", Rude())),
]


def test_a_sentence_and_nothing_written(ledger):
    for question, cost, parts, more in BAD:
        with pytest.raises(InputError) as caught:
            ledger.charge(question, cost, parts, **more)
        text = str(caught.value)
        assert text.endswith(".")
        assert "\n" not in text
        assert len(text) < 200
    assert (ledger.entries, ledger.left) == ((), Pure(1))
    ledger.charge("q", HALF, [{"a": [1, "b", None, {"c": 2.5}]}])
    assert len(ledger.entries) == 1


@pytest.mark.parametrize("cost", [None, 0.5, "1/2", Pure, Rude()], ids=lambda cost: type(cost).__name__)
def test_what_would_be_allowed_is_asked_for_a_cost(ledger, cost):
    with pytest.raises(InputError):
        ledger.allows(cost)


# Keys that look like states


def test_a_key_is_not_the_name_of_a_state(ledger):
    ledger.charge("a stream", HALF, [], key="S")
    ledger.advance("S", 0, b"state")
    for key in ("S#0", "S#1", "S#007", "T#0", "#3"):
        with pytest.raises(InputError, match="# and a number"):
            ledger.charge("q", Pure("1/8"), [], key=key)
    with pytest.raises(PrivacyError, match="charged"):
        ledger.keep("S#0", b"answer")
    assert ledger.latest("S") == (0, b"state")
    for key in ("S#", "S#a", "S#0.", "#S", "S# 0"):
        ledger.charge("q", Pure("1/64"), [], key=key)
        assert ledger.keep(key, b"answer") == ledger.answer(key) == b"answer"
    assert ledger.answer("S") is None


def test_a_key_that_was_charged_before_such_keys_were_refused(tmp_path, monkeypatch):
    """It goes on being the same charge, and a stream whose state would lie there is refused."""
    from noisette.ledger import book as module

    with monkeypatch.context() as before:
        before.setattr(module, "new_key", lambda key: None)
        book = open_ledger(tmp_path / "x.ledger", budget=Pure(1))
        first = book.charge("q", Pure("1/4"), [], key="S#0")
        book.close()
    book = open_ledger(tmp_path / "x.ledger")
    assert book.charge("q", Pure("1/4"), [], key="S#0").number == first.number
    assert book.keep("S#0", b"answer") == b"answer"
    book.charge("a stream", Pure("1/4"), [], key="S")
    with pytest.raises(NoisetteError, match="another key"):
        book.advance("S", 0, b"state")
    assert (book.answer("S#0"), len(book.entries)) == (b"answer", 2)
    book.verify()
    book.close()


# Answers and states in memory are as those on disk


def test_the_first_answer_is_kept(ledger):
    with pytest.raises(PrivacyError, match="charge first"):
        ledger.keep("k", b"one")
    ledger.charge("q", HALF, [], key="k")
    assert ledger.answer("k") is None
    assert [ledger.keep("k", body) for body in (b"one", b"two")] == [b"one", b"one"]
    assert ledger.answer("k") == b"one"


def test_states_follow_each_other(ledger):
    with pytest.raises(PrivacyError, match="charge first"):
        ledger.advance("s", 0, b"")
    ledger.charge("q", HALF, [], key="s")
    assert ledger.latest("s") is None
    with pytest.raises(PrivacyError, match="one after the other"):
        ledger.advance("s", 1, b"")
    assert [ledger.advance("s", n, b"%d" % n) for n in (0, 0, 1, 0, 1, 2)] == [True, False, True, False, False, True]
    assert ledger.latest("s") == (2, b"2")
    for number in (-1, True, 0.5, "0", None):
        with pytest.raises(InputError):
            ledger.advance("s", number, b"")
