"""The attacks by name: each takes a seed, and either counts what it tried or convicts with the smallest example found.

`python -m tests.attack` goes on with them over new seeds; the tests run a few seeds of each, and convict its twins.
"""

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.attack.files import files, random_files, random_lines
from tests.attack.questions import PYTHON, Question, random_question
from tests.attack.tables import Shelf, Table, World, random_world
from tests.attack.trial import Convicted, Twin, attacked, innocent, opened, planned
from tests.attack.twins import CANARY

from noisette.privacy import Neighbours

NUMBER = 314159265358979
"""What the victim alone holds as a number; so long that noise and hashes show it by chance once in 10^10 runs."""

Attack = Callable[[int, Shelf, Twin], Counter[str]]
EACH = 6  # questions of a random world

COUNT = Question(aggregates=("COUNT(*)",))
BY_TEXT = Question(keys=("v.g",), aggregates=("COUNT(*)", "SUM(LEAST(GREATEST(v.k, 0), 2))"))


def tables(seed: int, shelf: Shelf, twin: Twin = innocent) -> Counter[str]:
    """Random tables x random questions x both relations."""
    rng = random.Random(f"tables {seed}")
    return attacked(shelf, random_world(rng), [random_question(rng) for _ in range(EACH)], twin)


def ruled(seed: int, shelf: Shelf, twin: Twin = innocent) -> Counter[str]:
    """The same under rules of the house: what decides which groups are shown is measured and stated as well."""
    rng = random.Random(f"rules {seed}")
    world, rules = random_world(rng), {"minimum_frequency": rng.choice([1, 2, 5, 50]), "least_difference": 3}
    rules |= rng.choice([{}, {"failure": "1e-30"}, {"failure": "0.9"}, {"rounding": 5}])
    return attacked(shelf, replace(world, policy={**world.policy, "rules": rules}), _queries(rng), twin)


def _queries(rng: random.Random) -> list[Question]:
    """Random questions in SQL."""
    return [one for one in (random_question(rng) for _ in range(2 * EACH)) if not one.python]


def lines(seed: int, shelf: Shelf, twin: Twin = innocent) -> Counter[str]:
    """A CSV file with an odd line."""
    rng = random.Random(f"lines {seed}")
    return attacked(shelf, random_lines(rng), [COUNT, BY_TEXT, random_question(rng)], twin)


def odd_files(seed: int, shelf: Shelf, twin: Twin = innocent) -> Counter[str]:
    """Odd bytes, mixed schemas, extreme decimals and dates, and some questions."""
    rng = random.Random(f"files {seed}")
    return attacked(shelf, random_files(rng), [COUNT, BY_TEXT, *(random_question(rng) for _ in range(EACH))], twin)


def every_question(
    name: str, seed: int, shelf: Shelf, twin: Twin = innocent, part: slice = slice(None)
) -> Counter[str]:
    """The same for one sort of file and every question there is, or a part of them."""
    rng = random.Random(f"{name} {seed}")
    asked = [Question(python=write(rng)) for kind, write in sorted(PYTHON.items()) if kind != "bounds"][part]
    plain = [COUNT, BY_TEXT, Question(keys=("v.k", "LOWER(v.g)"), aggregates=("COUNT(DISTINCT v.u)", "COUNT(v.d)"))]
    return attacked(shelf, files(name, rng), [*plain, *asked, *(random_question(rng) for _ in range(2))], twin)


# Time

MANY, FEW = 60, 2
TIMES, LEAST = 8, 0.25  # as many times as long, and that many seconds at least, is out of proportion
SELF = "v" + "".join(f" JOIN v AS w{i} ON v.u = w{i}.u" for i in range(3))


def crowded(people: int = 50) -> World:
    """People with two rows each; the victim has many, and whoever takes its place has few."""
    columns = (("u", "BIGINT"), ("g", "VARCHAR"), ("k", "BIGINT"))
    mine = (str(people), f"'{CANARY}'", "1")
    rows = [(str(i), "'a'", str(j)) for i in range(people) for j in range(2)]
    policy = {"tables": {"v": {"unit": "u", "rows": 2, "columns": {"k": {"bounds": [0, 2]}}}}}
    return World({"v": Table(columns, (*rows, *[mine] * MANY))}, policy, str(people), {"v": (mine,) * FEW}, "arrow")


def time_of_answers(seed: int, shelf: Shelf, twin: Twin = innocent) -> Counter[str]:
    """Whether one person's rows show in the time that an answer takes: the least of some tries, each drawn anew."""
    questions = [COUNT, BY_TEXT, Question(source=SELF, aggregates=("COUNT(*)",)), Question(python='nz.Mode("g")')]
    curators = opened(shelf, crowded())
    assert curators is not None
    for question in questions:
        for relation, pair in curators.items():
            took = [_least(curator, question, relation, twin) for curator in pair]
            if max(took) > max(LEAST, TIMES * min(took)):
                found = (
                    f"{took[0]:.2f} seconds for a person with {MANY} rows, {took[1]:.2f} for a neighbour, {relation}"
                )
                raise Convicted("time", found, f"question: {question}")
    return Counter(worlds=1, questions=2 * len(questions), answered=2 * len(questions))


def _least(curator: Any, question: Question, relation: Neighbours, twin: Twin) -> float:
    offer, refused = planned(curator, question, relation)
    assert refused is None
    source, times = twin(curator._source), []
    for i in range(3):  # with a new secret nothing of an earlier answer is of use
        begun = time.process_time()
        offer.draw(source, curator.schema, bytes([i] * 16))
        times.append(time.process_time() - begun)
        if times[-1] < LEAST:
            break
    return min(times)


ATTACKS: dict[str, tuple[Attack, int]] = {
    "tables": (tables, 16),
    "files": (odd_files, 3),
    "rules": (ruled, 3),
    "lines": (lines, 2),
    "time": (time_of_answers, 1),
}
"""Each attack, and how many seeds of it are tried in a round."""


# A world with a marker in it, for twins that look for one


def marked(*, storage: str = "arrow", most: int = 2) -> World:
    """A small table; the victim's rows alone hold the marker, as text and as a number.

    Numbers up to `most` lie within their bounds: a marker beyond them is in no group and in no comparison.
    """
    columns = (("u", "VARCHAR"), ("g", "VARCHAR"), ("k", "BIGINT"), ("x", "DOUBLE"), ("d", "DATE"), ("b", "BOOLEAN"))
    day = "'2020-01-01'"
    plain = [(f"'p{i}'", "'a'" if i % 2 else "'b'", str(i % 3), "0.5", day, "TRUE") for i in range(6)]
    mine = [(f"'{CANARY}'", f"'{CANARY}'", str(NUMBER), f"{NUMBER}.0", day, "FALSE")] * 3
    rules = {"k": {"bounds": [0, most]}, "x": {"bounds": [0, most]}, "d": {"nullable": True}}
    policy = {"tables": {"v": {"unit": "u", "rows": 2, "columns": rules}}}
    other = (f"'{CANARY}'", "'a'", "2", "1.0", day, "TRUE")
    return World({"v": Table(columns, (*plain, *mine))}, policy, f"'{CANARY}'", {"v": (other,)}, storage)
