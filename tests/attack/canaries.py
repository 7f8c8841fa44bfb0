"""Whatever is said, logged, warned of, printed or written while questions are asked, and whether the marker is in it.

Out of scope: the local variables in a traceback's frames, and the memory of the process; both belong to the curator.
"""

import contextlib
import io
import logging
import os
import struct
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.attack.attacks import BY_TEXT, CANARY, COUNT, NUMBER, marked
from tests.attack.questions import Question
from tests.attack.tables import Shelf
from tests.attack.trial import Convicted, Twin, innocent

import noisette as nz
from noisette.errors import NoisetteError

FOLDERS = ("TMPDIR", "TEMP", "TMP", "HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")
SPEND = nz.Approx(1, "1e-12")  # an unknown key that one person holds is released that rarely
PLAIN_JSON = '{"mode": {"column": "g"}}'
WRONG_JSON = [  # the marker is in the question, and must not come back in a refusal
    f'{{"{CANARY}": {{"column": "g"}}}}',
    f'{{"mode": {{"{CANARY}": "g"}}}}',
    f'{{"mode": {{"column": "g", "lead": "{CANARY}"}}}}',
    f'{{"mode": {{"column": "g", "of": "the {CANARY}"}}}}',
    f'{{"top": {{"column": "g", "k": {{"{CANARY}": {NUMBER}}}}}}}',
    f'{{"choose": {{"candidates": [{{"date": "{CANARY}"}}, {NUMBER}], "score": "{CANARY}"}}}}',
    f'{{"best": {{"candidates": [{{"{CANARY}": 1}}, 2], "by": "{CANARY}"}}}}',
    f'{{"left_out": {{"rows": ["{CANARY}"], "by": "{CANARY}"}}}}',
    f'{{"spread": {{"column": "g", "grid": "{CANARY}"}}}}',
    f'{{"apply": {{"function": "{CANARY}", "blocks": {NUMBER}}}}}',
    f'{{"mode": "{CANARY}',
]
ASKED = [
    COUNT,
    BY_TEXT,
    Question(keys=("v.k",), aggregates=("AVG(v.x)", "COUNT(DISTINCT v.g)", "MAX(v.k)")),
    Question(where=("LOWER(v.g) LIKE 'c%'",), keys=("v.g", "v.k"), aggregates=("COUNT(*)",)),
    Question(python='nz.Mode("g")'),
    Question(python='nz.Top("k", 2)'),
    Question(python='nz.TrimmedMean("x", trim=1)'),
    Question(python='nz.Spread("k")'),
    Question(python=f"nz.questions.from_json('{PLAIN_JSON}')"),
    *(Question(python=f"nz.questions.from_json({text!r})") for text in WRONG_JSON),
    Question(aggregates=("SUM(v.g)",)),
    Question(aggregates=("SUM(v.nothing)",)),
    Question(aggregates=("CAST(v.g AS INTEGER)",)),
]


def sings(text: str | bytes) -> bool:
    """Whether the marker is in it, as text or as a number, as people or as engines write it."""
    raw = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    plain = raw.replace(b",", b"").replace(b"_", b"")
    written = [CANARY.encode(), CANARY.encode("utf-16-le"), CANARY.encode("utf-32-le"), str(NUMBER).encode()]
    stored = [
        struct.pack("<q", NUMBER),
        struct.pack(">q", NUMBER),
        struct.pack("<d", NUMBER),
        struct.pack(">d", NUMBER),
    ]
    return any(sign in raw for sign in (*written, *stored)) or str(NUMBER).encode() in plain


@contextlib.contextmanager
def listening(folder: Path) -> Iterator[dict[str, Any]]:
    """Within it everything goes into the folder or is heard; afterwards `heard` holds what was, by where it was."""
    heard: dict[str, Any] = {}
    log, out, err = io.StringIO(), io.StringIO(), io.StringIO()
    handler, root, level = logging.StreamHandler(log), logging.getLogger(), logging.getLogger().level
    before, here, temporary = {name: os.environ.get(name) for name in FOLDERS}, Path.cwd(), tempfile.tempdir
    os.environ.update(dict.fromkeys(FOLDERS, str(folder)))
    tempfile.tempdir = None
    os.chdir(folder)
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            warnings.simplefilter("always")
            yield heard
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        os.chdir(here)
        tempfile.tempdir = temporary
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})
    heard |= {"a log": log.getvalue(), "standard output": out.getvalue(), "the error stream": err.getvalue()}
    heard["a warning"] = " ".join(str(warning.message) for warning in caught)
    for path in (path for path in folder.rglob("*") if path.is_file()):
        heard[f"the file {path.relative_to(folder)}"] = path.read_bytes()
        heard[f"the name of the file {path.name}"] = path.name


def said(curator: Any, question: Question) -> str:
    """All that an analyst sees of a question: explanation, answer, record, statement, or the error with its chain."""
    texts = []
    for act in ("explain", "ask"):
        try:
            found = getattr(curator, act)(question.built(curator), spend=SPEND)
        except NoisetteError as error:
            texts.append("".join(traceback.format_exception(error)) + repr(chain(error)))
            continue
        texts.append(repr(found) + str(found))
        if act == "ask":
            texts += [found._repr_html_(), found.to_json(), found.statement]
    return "\n".join([*texts, repr(curator), repr(curator.budget), repr(curator.ledger.entries)])


def chain(error: BaseException | None) -> list[str]:
    """An error, what caused it and what it came on top of, with their notes."""
    if error is None:
        return []
    here = [repr(error), str(error), *getattr(error, "__notes__", [])]
    return here + chain(error.__cause__) + chain(error.__context__)


def canaries(seed: int, shelf: Shelf, twin: Twin = innocent, teller: Callable[[Any], Any] = innocent) -> Counter[str]:
    """Ask about a table with the marker in it, and look for it everywhere but in the data.

    `twin` makes a guilty source, `teller` a guilty curator.
    """
    world = marked(storage=("arrow", "parquet", "duckdb")[seed % 3])
    source = shelf.source(world)
    with tempfile.TemporaryDirectory(dir=shelf.folder) as folder, listening(Path(folder)) as heard:
        ledger = Path(folder) / "a.ledger"
        curator = nz.open(source, budget=nz.Approx(1000, "1e-3"), policy=world.policy, ledger=ledger)
        curator._source = twin(curator._source)
        curator = teller(curator)
        for question in ASKED:
            heard[f"what is said of {question}"] = said(curator, question)
        curator.ledger.close()
    for where, text in heard.items():
        if sings(text):
            raise Convicted("canary", f"the marker is in {where}", world)
    return Counter(worlds=1, questions=len(ASKED), answered=len(ASKED))
