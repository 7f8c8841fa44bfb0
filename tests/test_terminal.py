"""What is printed is text: no name, key or literal is read as markup, and none is obeyed or hidden by a terminal."""

import importlib
import io
import json
from types import SimpleNamespace

import pyarrow
import pytest
from rich.console import Console
from rich.progress import TextColumn
from rich.table import Table
from rich.text import Text

from noisette import terminal
from noisette.answers import Column as Answered
from noisette.answers.rendering import as_text
from noisette.cli.entries import as_table, question, whole_question
from noisette.errors import InputError
from noisette.privacy import Pure
from noisette.query.canonical import canonical_text
from noisette.query.kind import Kind
from noisette.query.schema import Column, Limits
from noisette.query.schema import Table as Stored
from noisette.query.sql import parse
from noisette.query.sql.text import read
from noisette.text import aligned, visible

VISITS = {"visits": Stored("visits", (Column("w", Kind("text")),), unit="id", limits=Limits(rows=1))}
HOSTILE = {
    "a tag that ends nothing": "b[/]",
    "a concealed part": "[conceal]' OR w = 'a' OR w = 'b[/conceal]",
    "a colour": "b[red]x",
    "an emoji's name": ":warning: a",
    "an escape": "a\x1b[2Jb",
    "an 8-bit control sequence": "a\x9b2Jb",
    "a text that is turned around": "\u202e'eurt' = w RO\u202c",
    "isolates": "a\u2066b\u2069",
    "a mark": "a\u200fb\u200eb",
    "a soft hyphen and a joiner of nothing": "a\xadb\u2060c",
    "another line": "a\nx is approved: b\r\u2028c\u2029",
    "a tag beyond the plane": "a\U000e0041b",
}
texts = pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)


def printed(thing, made=None):
    """What a console writes, on a wide terminal."""
    made = terminal.console() if made is None else made
    made.file, made.width = io.StringIO(), 400
    made.print(thing)
    return made.file.getvalue()


def seen(text):
    """A literal on one line, as the owner reads it."""
    return visible(text.replace("'", "''"))


def harmless(shown):
    return all(character == "\n" or character.isprintable() for character in shown)


@texts
def test_a_console_prints_a_text_as_it_is(text):
    table = Table(title=visible(text))
    table.add_column(visible(text))
    table.add_row(visible(text))
    assert printed(visible(text)).strip() == visible(text)
    assert printed(table).count(visible(text)) == 3
    assert harmless(printed(text))
    assert harmless(printed(Text(text)))


@texts
def test_a_console_that_is_made_elsewhere_is_convicted(text):
    """By one text or the other: markup, emoji or what a terminal obeys."""
    try:
        shown = printed(text, Console())
    except Exception:
        return
    assert shown.strip() != text.strip() or not harmless(shown)


def test_colours_are_of_our_own():
    coloured = Console(file=io.StringIO(), force_terminal=True, color_system="standard", markup=False)
    coloured.push_render_hook(terminal._Hook())
    coloured.print(Text("ok \x1b[31m", "green"))
    assert coloured.file.getvalue() == "\x1b[32mok \\u001b[31m\x1b[0m\n"


@texts
def test_what_is_echoed(text, capsys):
    terminal.echo(f"begin {text} end")
    shown = capsys.readouterr().out
    assert harmless(shown)
    terminal.echo(json.dumps({"key": text}, ensure_ascii=False, indent=2))
    assert json.loads(capsys.readouterr().out) == {"key": text}


def test_data_for_a_file_stay_as_they_are(capsys, monkeypatch):
    terminal.echo("\u200c\n", nl=False, data=True)
    assert capsys.readouterr().out == "\u200c\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    terminal.echo("\u200c\n", nl=False, data=True)
    assert capsys.readouterr().out == "\\u200c\n"


@texts
def test_a_bar_of_progress(text):
    column = terminal.progress().columns[0]
    assert isinstance(column, TextColumn)
    assert column.render(SimpleNamespace(description=text)).plain == Text(text).plain


# What waits for approval, and the ledger


def canonical(text):
    """How the ledger holds a question with a literal, in an old ledger too, where anything may stand in it."""
    asked = canonical_text(parse("SELECT count(*) FROM visits WHERE w = 'HERE'", VISITS))
    return json.dumps({"asked": [asked.replace('"HERE"', json.dumps(text))]})


def listed(text, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "4000")
    request = SimpleNamespace(id="abc", analyst="ann", spend=Pure("0.5"), question=text)
    importlib.import_module("noisette.cli.approve")._list([request], json=False)
    return capsys.readouterr().out


@texts
def test_a_condition_that_waits_is_listed_in_full(text, capsys, monkeypatch):
    shown = listed(canonical(text), capsys, monkeypatch)
    assert f"SELECT COUNT(*) FROM visits WHERE w = '{seen(text)}' " in shown
    assert harmless(shown)
    assert len(shown.strip().splitlines()) == 3


def test_a_long_condition_is_listed_to_its_end(capsys, monkeypatch):
    text = canonical("harmless " * 100 + "[conceal]the end")
    assert "[conceal]the end'" in listed(text, capsys, monkeypatch)
    assert question(text).endswith("…")


def test_where_sql_has_no_words_nothing_is_left_out_and_a_text_stands_in_quotes():
    arms = [part for i in range(20) for part in (["equal", ["name", "t1.w"], ["text", f"v{i}"]], ["text", "'), a"])]
    asked = {"aggregates": [["odd", ["case", *arms, ["text", "last"]]]], "keys": [], "source": ["scan", "visits", "t1"]}
    text = json.dumps({"asked": [json.dumps(asked)]})
    assert "'v19'), '''), a', 'last'))" in whole_question(text)
    assert "last" not in question(text)


@texts
def test_the_ledger_shows_texts_as_they_are(text):
    body = {"kind": "act", "number": 1, "time": "2024-01-01T00:00", "act": "share", "why": text, "analyst": text}
    shown = printed(as_table([body], 5))
    assert visible(text) in shown
    assert harmless(shown)
    assert len(shown.strip().splitlines()) == 3


# SQL


@pytest.mark.parametrize(
    "character", ["\x00", "\x1b", "\x7f", "\x80", "\x85", "\x9b", "\x9f", "\u202a", "\u202e", "\u2066", "\u2069"]
)
@pytest.mark.parametrize(
    "place", ["SELECT count(*) FROM visits WHERE w = 'a{}'", 'SELECT count(*) AS "n{}" FROM visits']
)
def test_controls_are_refused_in_sql(character, place):
    read(place.format("\u200c"))  # which Persian is written with
    with pytest.raises(InputError, match="characters that are not text"):
        read(place.format(character))


# In Python


@texts
def test_names_in_errors_and_tables_are_seen(text):
    assert str(InputError(f"There is no column {text}.")) == f"There is no column {visible(text, chr(10))}."
    assert harmless(aligned([text, "n"], [[text, "3"]]))
    head, *_ = as_text([Answered(text, pyarrow.array(["key"]))])
    assert head == visible(text)
