"""Regular expressions: the automaton, RE2 in the engine and Python's own find the same, and nothing runs away."""

import re

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.timing import within

from noisette.errors import InputError
from noisette.query import pattern

LETTERS = ["a", "b", "B", "7", "_", " ", "é", "\n", ".", "-", "\0", "😀"]
ONES = st.sampled_from(
    ["a", "b", "7", "é", ".", r"\.", "[ab]", "[^a]", "[a-z7]", r"[\d_-]", r"\d", r"\W", r"\s", "-", r"[^\n\s]", "😀"]
)
TEXTS = ["", *LETTERS, "ab", "ba", "aab", "a\n", "\na", "éa", "b7_", "a" * 30 + "b", "😀.", "a.b-7 \0"]


def _larger(inner):
    times = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}"])
    return st.one_of(
        st.lists(inner, min_size=0, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
        st.tuples(inner, times).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
    )


PATTERNS = st.tuples(
    st.sampled_from(["", "^", "a|^", "(^|b)"]),
    st.recursive(ONES, _larger, max_leaves=8),
    st.sampled_from(["", "$", "($|a)", "|$"]),
).map("".join)
ENGINE = duckdb.connect()


def in_engine(text):
    """What RE2 finds in each of the texts."""
    query = "SELECT regexp_matches(t, ?) FROM (SELECT unnest(?) AS t)"
    return [row[0] for row in ENGINE.execute(query, [pattern.to_re2(text), TEXTS]).fetchall()]


def in_python(text):
    own = re.compile(text.replace("$", r"\Z"), re.ASCII | re.DOTALL)
    return [own.search(each) is not None for each in TEXTS]


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(PATTERNS)
def test_all_engines_find_the_same(text):
    here = [pattern.found(each, text) for each in TEXTS]
    assert here == in_engine(text)
    assert here == in_python(text)


@pytest.mark.parametrize(
    ("text", "right", "wrong"), [("a$", r"\z", "(?m:$)"), ("a.", "(?s:.)", "(?-s:.)"), (r"^\W$", "[^", "[^\\x{e9}")]
)
def test_twins_that_read_one_part_in_another_way_are_found(text, right, wrong, monkeypatch):
    """A twin ends at lines, one has a dot that stops there, one takes an accented letter for one of ASCII."""
    assert in_engine(text) == [pattern.found(each, text) for each in TEXTS]
    written = pattern.to_re2(text)
    assert right in written
    monkeypatch.setattr(pattern, "to_re2", lambda text: written.replace(right, wrong))
    assert in_engine(text) != [pattern.found(each, text) for each in TEXTS]


@pytest.mark.parametrize(
    ("text", "size", "end"), [("(a+)+$", 5_000, "b"), ("(a|a)*c", 5_000, ""), ("(.*a){9}$", 1_500, "b")]
)
def test_nothing_runs_away(text, size, end):
    of = "a" * size + end
    with within(120):
        assert not pattern.found(of, text)
    assert ENGINE.execute("SELECT regexp_matches(?, ?)", [of, pattern.to_re2(text)]).fetchone() == (False,)


@pytest.mark.slow
def test_the_largest_patterns_are_still_answered(capfd):
    """An automaton too large for the memory of RE2 is run step by step, without a word about the text."""
    for text in ("(.{0,9}a.{0,9}){12}$", "(a|b){0,100}c", "[^a]{0,150}b.{0,100}", "(a?){100}a{100}$"):
        long = "ab" * 2_000 + "é"
        found = ENGINE.execute("SELECT regexp_matches(?, ?)", [long, pattern.to_re2(text)]).fetchone()
        assert found == (pattern.found(long, text),)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("text", ["50% (a)", "a.b*c", "^$", "[x]\\", "{2}|+?"])
def test_escaped_texts_are_found_as_they_stand(text):
    assert pattern.found(f"x{text}y", pattern.escaped(text))
    assert not pattern.found(f"x{text[1:]}y", f"^x{pattern.escaped(text)}y$")


@pytest.mark.parametrize(
    "text",
    [
        "(", ")", "a)", "[a", "[]", "[z-a]", r"[a-\d]", "[[:alpha:]]", "*", "a**", "a+?", "a{,3}", "a{3,2}", "a{0}",
        "a{1000}", "^*", "$+", r"\b", r"\1", r"\x41", r"\p{L}", "\\", "(?i)a", "(?=a)", "(?P<x>a)", "a{999}{9}",
        "(" * 30 + "a" + ")" * 30, "a" * 501, r"\é",
    ],
)  # fmt: skip
def test_refused(text):
    with pytest.raises(InputError) as refused:
        pattern.read(text)
    assert str(refused.value).endswith(".")
    assert ". " not in str(refused.value).replace("[a-z], ., ^", "")


def test_like_with_an_escape():
    for text, wanted in [("50%", True), ("500", False), ("50%!", False)]:
        assert pattern.found(text, pattern.like("5_!%", "!")) is wanted
    assert pattern.found("a\nb", pattern.like("a_b", "!"))
    assert pattern.found("a", pattern.like("a!", "!"))
