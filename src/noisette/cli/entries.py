"""Entries of a ledger for people to read: one line for each question, with what was released for it."""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from noisette.cli.common import table_of
from noisette.exact.number import fraction_of
from noisette.query.sql.readback import sql_of
from noisette.query.sql.writer import quoted
from noisette.text import visible

__all__ = ["as_table", "question", "whole_question"]

_LONGEST = 300
_ARMS = 12  # a CASE with more, such as that of bought bounds, is abbreviated
_OF_QUESTION = ("answer", "release")

Body = Mapping[str, Any]


def as_table(history: Sequence[Body], last: int) -> Any:
    """The last entries, one a row; an answer and its records stand in the row of their question, if that is shown."""
    from rich.text import Text

    numbers = {body["key"]: body["number"] for body in history if body["kind"] == "charge"}
    followed: dict[str, list[Body]] = {}
    for body in history:
        if body["kind"] in _OF_QUESTION:
            followed.setdefault(body["of"], []).append(body)
    recent = history[-last:]
    here = {body["key"] for body in recent if body["kind"] == "charge"}
    named = any(body.get("analyst") for body in recent)
    table = table_of(">#", "time (UTC)", *(["analyst"] if named else []), "what", "cost")
    for body in recent:
        if body["kind"] in _OF_QUESTION and body["of"] in here:
            continue
        when, who = body["time"][:16].replace("T", " "), [body.get("analyst") or ""] if named else []
        what = [_follows(body, numbers)] if body["kind"] in _OF_QUESTION else [_what(body)]
        if body["kind"] == "charge":
            what += [*_about(body), f"→ {_released(body, followed.get(body['key'], []))}"]
        lines = "\n".join(map(visible, what))
        table.add_row(*map(Text, (str(body["number"]), visible(when), *map(visible, who), lines, visible(_cost(body)))))
    return table


def _follows(body: Body, numbers: Mapping[str, int]) -> str:
    of = f"of entry {numbers[body['of']]} " if body["of"] in numbers else ""
    return f"the answer {of}was kept" if body["kind"] == "answer" else f"a record {of}was released"


def _released(charge: Body, followed: Sequence[Body]) -> str:
    """What is known of the answer to a question: with which noise, in which entries, or that there is none yet."""
    noise = "; ".join(dict.fromkeys(_noise(part) for part in charge["mechanisms"]))
    if any(body.get("sha256") == _failed() for body in followed):
        return "it failed, nothing was released"
    if not followed:
        return f"nothing yet; asked again, it is free ({noise})"
    entries = ", ".join(str(body["number"]) for body in followed)
    return f"{noise} (entries {entries})" if noise else f"entries {entries}"


def _noise(part: Mapping[str, Any]) -> str:
    of = part.get("measure")
    return f"{of}: {part.get('mechanism')}" if isinstance(of, str) else str(part.get("mechanism"))


def _failed() -> str:
    from noisette.curator.answer_cache import FAILED
    from noisette.ledger.entry import digest

    return digest(FAILED)


def _what(body: Body) -> str:
    match body["kind"]:
        case "charge":
            return question(body["question"])
        case "open":
            over = f", starting over: {body['start_over']}" if "start_over" in body else ""
            return f"the ledger was opened{over}"
        case "request":
            return f"a question waits for approval: {question(body['question'])}"
        case "purchase":
            return f"the {body['what']} of {body['column'] or body['table']} were bought"
        case _:
            return f"{body['act']}: {body['why']}"


def _about(body: Body) -> list[str]:
    """The state of the data, with what pins it where the entry says so: a line for each file, or the server's words."""
    if "state" not in body:
        return []
    pins = json.loads(body["pin"]) if "pin" in body else {}
    lines = [
        f"{name}: {size:,} bytes, written {_time(at)}" for name, size, at in pins.pop("files", []) if size is not None
    ]
    lines += [f"{name}: {value}" for name, value in pins.items()]
    return [f"state {body['state'][:12]}", *(f"  {line}" for line in lines)]


def _time(nanoseconds: int) -> str:
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC).isoformat(" ", "seconds")


def _cost(body: Body) -> str:
    said = body.get("guarantee" if body["kind"] == "charge" else "budget")
    if not said:
        return ""
    from noisette.answers.figures import rounded

    letters = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
    parts = [f"{letter} = {rounded(fraction_of(said[n], n), up=True)}" for n, letter in letters.items() if n in said]
    return ("" if body["kind"] == "charge" else "budget ") + ", ".join(parts)


def question(text: str) -> str:
    """The beginning of a canonical question, as `whole_question` has it.

    >>> asked = {"aggregates": [["rows"], ["mean", ["name", "t1.age"]]], "keys": [["name", "t1.ward"]]}
    >>> question(json.dumps({"asked": [json.dumps({**asked, "source": ["scan", "visits", "t1"]})]}))
    'SELECT ward, COUNT(*), AVG(age) FROM visits GROUP BY ward'
    """
    asked = whole_question(text, _ARMS)
    return asked if len(asked) <= _LONGEST else f"{asked[: _LONGEST - 1]}…"


def whole_question(text: str, arms: float = math.inf) -> str:
    r"""A canonical question as SQL on one line, with its name where it is another one; tersely where SQL has no words.

    There a CASE with more than so many `arms` is abbreviated.

    >>> asked = {"aggregates": [["rows"]], "keys": [], "source": ["scan", "visits\u202e", "t1"]}
    >>> print(whole_question(json.dumps({"asked": [json.dumps(asked)]})))
    SELECT COUNT(*) FROM "visits\u202e"
    """
    try:
        tree = json.loads(text)
        asked = "; ".join(sql_of(one) or _one(json.loads(one), arms) for one in tree["asked"])
        asked = f"{tree['question']}: {asked}" if isinstance(tree.get("question"), str) else asked
    except (ValueError, KeyError, TypeError, IndexError):
        asked = text
    return visible(asked)


def _one(asked: Mapping[str, Any], arms: float) -> str:
    what, by = (", ".join(_terse(part, arms) for part in asked[name]) for name in ("aggregates", "keys"))
    return f"{what or 'keys'}{' by ' if by else ''}{by} from {_terse(asked['source'], arms)}"


def _terse(part: Any, arms: float) -> str:
    """A part of a canonical text; names and texts are quoted, so that they look like nothing else."""
    match part:
        case ["scan", table, *_]:
            return quoted(str(table))
        case ["text", text]:
            return "'" + str(text).replace("'", "''") + "'"
        case ["number", number]:
            return str(number)
        case ["name", name]:
            return quoted(str(name).partition(".")[2] or str(name))
        case [str(name)]:
            return name
        case ["case", condition, *rest] if len(rest) > arms:
            return f"case({_terse(condition, arms)}, …)"
        case [str(name), *arguments]:
            return f"{name}({', '.join(_terse(each, arms) for each in arguments)})"
        case _:
            return str(part)
