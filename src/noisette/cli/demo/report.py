"""The tour as one HTML file."""

import json
from collections.abc import Iterator
from itertools import groupby

from noisette import charts
from noisette import report as parts
from noisette.answers import Column
from noisette.answers.figures import percent, promise
from noisette.cli.demo.questions import MONTHS, TARGET
from noisette.cli.demo.tour import AGAIN, ALL, OTHERS, Answer, Counts, Tour
from noisette.curator.demo import OLDEST
from noisette.ledger import Entry
from noisette.releases.maps.drawing import beside

__all__ = ["report"]

_LONGEST, _SOME = 160, 6

_LEAD = (
    "A tour of differential privacy on a hospital that does not exist. All patients and visits are invented, the same "
    "ones every time. That is why this page may show the truth beside each answer; of real data nobody gets to see it."
)


def report(tour: Tour) -> str:
    """The tour as a page that needs no network."""
    sections = [
        _tiles(tour),
        _data(tour),
        _attack(tour),
        *_answers(tour),
        *_map(tour),
        _curves(tour),
        _budget(tour),
        _ledger(tour),
    ]
    return parts.page("Noisette: a small noise around every answer", _LEAD, sections)


def _tiles(tour: Tour) -> str:
    held, bars = tour.bars
    return parts.tiles(
        [
            (
                f"{tour.rows:,} visits",
                f"of {tour.patients:,} invented patients, each protected with all of their visits",
            ),
            (
                f"± {tour.attack.private.doubt:,.0f}",
                "is the attacker's error about one person; with exact answers it is 0",
            ),
            (
                f"{held} of {bars}",
                "error bars hold the truth; by the noise alone 95 % do, a little less by the limits below",
            ),
            (promise(tour.budget), f"is the budget, spent on {len(tour.entries)} charges; then answers are refused"),
        ]
    )


def _data(tour: Tour) -> str:
    facts = tour.facts
    return parts.card(
        "The data, and what their owner declares",
        f"The table visits has a row for each visit: patient_id, day, ward, diagnosis, age, cost. One patient comes "
        f"{facts['most']} times, most come a few times; some diagnoses are those of a handful. The public table wards "
        "says which region a ward is in. The owner protects each patient_id, counts at most 16 visits of one, and "
        "bounds a cost by 3,000.",
        note=f"Error bars hold the noise, not what these limits change: {facts['beyond']:,} of {tour.rows:,} visits "
        f"are beyond 16 of a patient, and {facts['clamped']:,} costs above 3,000. Only invented data lets us count.",
    )


def _attack(tour: Tour) -> str:
    attack = tour.attack
    sides = _counts(attack.exact, attack.most), _counts(attack.private, attack.most)
    names = "everyone", "everyone but her", "the difference", "what it reveals"
    rows = [list(row) for row in zip(names, *sides, strict=True)]
    return parts.card(
        "An attack",
        f"The newspaper wrote that a woman of {OLDEST} was in this hospital, and there is one patient of that age. "
        "Somebody wants to know whether she is treated for depression. Two counts of many people seem harmless; their "
        "difference is what she alone contributes.",
        parts.code(f"{ALL}\n{OTHERS}"),
        parts.table(["visits", "exact answers", "through Noisette"], rows, numbers=(1, 2)),
        note=f"The exact answers are computed by this demo from its own invented data: she had {attack.secret} such "
        f"visits. Through Noisette the two questions cost {promise(attack.cost)}; asking the first one {AGAIN} times "
        f"more gave the same answer each time, so averaging does not help. Whoever knows everyone else and starts with "
        f"a fifty-fifty guess is right with a probability of at most {attack.ceiling:.0%} after both answers.",
    )


def _counts(counts: Counts, most: int) -> list[str]:
    verdict = f"{counts.difference:,.0f}: revealed" if counts.reveals(most) else f"0 to {most} fit: nothing"
    return [*counts.texts, verdict]


# Answers


def _answers(tour: Tour) -> Iterator[str]:
    """A card for each question of the tour; what was asked together stands together."""
    for number, (question, group) in enumerate(groupby(tour.answers, key=lambda answer: answer.question), 1):
        answers = list(group)
        first, hidden = answers[0].release, _hidden(tour, answers[0])
        code = f"data.explain(question, error={TARGET:g})\n\n{tour.explained}"
        yield parts.card(
            f"{number}. {question.title}",
            question.text,
            parts.code(code) if question.title == MONTHS.title else "",
            *(_one(answer) for answer in answers),
            parts.more("What is promised", first.statement),
            note=f"{promise(first.guarantee)} · 95 % error bars · claim checked from its record{hidden}",
        )


def _one(answer: Answer) -> str:
    """The question, the table, and charts: beside it, or below if it has several numbers in a row."""
    drawn = [_deviations(answer, answer.release[name]) for name in answer.truth]
    table = parts.answer(answer.release, answer.truth)
    if answer.question.chart:
        drawn = [parts.figure(answer.release.plot()), *drawn]
    several = len(answer.truth) > 1
    return parts.code(answer.sql) + (table + parts.beside(*drawn) if several else parts.beside(table, "".join(drawn)))


def _labels(answer: Answer) -> list[str]:
    keys = [column.values.to_pylist() for column in answer.release.columns if not column.measured]
    return [", ".join(map(str, key)) for key in zip(*keys, strict=True)] or [""] * len(answer.release)


def _deviations(answer: Answer, column: Column) -> str:
    labels = _labels(answer) if any(_labels(answer)) else [column.name]
    given = column.values.to_pylist(), column.low, column.high
    release = answer.release
    note = f"{promise(release.guarantee)} for each {release.unit} · {percent(release.level)} error bars"
    title = f"{column.name}: distance from the truth"
    return parts.figure(charts.deviations(labels, *given, answer.truth[column.name], title=title, note=note))


def _hidden(tour: Tour, answer: Answer) -> str:
    """Which diagnoses were not released, if that was the question."""
    if answer.release.columns[0].name != "diagnosis":
        return ""
    rare = list(tour.hidden.items())
    some = ", ".join(f"{name} ({patients:,})" for name, patients in rare[:_SOME])
    return f" · not released, with their patients: {some}" + (
        f" and {len(rare) - _SOME} more" if len(rare) > _SOME else ""
    )


def _map(tour: Tour) -> Iterator[str]:
    """A private map beside the true one."""
    if tour.maps is None:
        return
    maps, value = tour.maps, tour.maps.release.value
    chart = beside({"through Noisette": value, "the truth": maps.truth}, columns=2, title="Where people live")
    yield parts.card(
        "A map",
        f"Another invented table says where {maps.people:,} people live. One release counts people in any rectangle or "
        "polygon, with error bars; its data have a budget of their own.",
        parts.code('city.ask(nz.Map("lon", "lat", cells=64), spend=1).value.plot()'),
        parts.figure(chart),
        parts.more("What is promised", maps.release.statement),
        note=f"By the map there are {value.total} people. Faint colours say that a count is within its own noise.",
    )


# Costs


def _curves(tour: Tour) -> str:
    chart = charts.curves(
        tour.curves, dots=tour.seen, x="ε of a question", y="± in visits or patients", title="The error bar of a count",
        note="95 %, and the errors seen",
    )  # fmt: skip
    return parts.card(
        "Error against ε",
        "The lines are known before anything is asked: explain reads no data. Twice the ε is half the error. Counting "
        "each patient once costs a sixteenth. The dots are the errors of all counts on this page; about "
        "95 % of them are expected below their line.",
        parts.figure(chart),
    )


def _budget(tour: Tour) -> str:
    left = {"ε left": ([float(eps) for _, eps in tour.left], None, None)}
    chart = charts.columns(range(len(tour.left)), left, name="charges", title="ε that is left after each charge")
    rows = [
        [str(i), title, f"{float(before - after):.4g}", f"{float(after):.4g}"]
        for i, ((_, before), (title, after)) in enumerate(zip(tour.left, tour.left[1:], strict=False), 1)
    ]
    table = parts.table(["", "for", "ε", "left"], rows, numbers=(2, 3))
    refusals = "".join(map(parts.said, tour.refusals))
    return parts.card(
        "The budget",
        "All answers together may cost so much and no more. Asked for 1 when less was left, and for 0.01 when nothing "
        "was, the curator refused before touching any data:",
        refusals,
        parts.beside(table, parts.figure(chart)),
    )


def _ledger(tour: Tour) -> str:
    rows = [[str(e.number), e.time[11:19], promise(e.guarantee), _mechanisms(e), _asked(e)] for e in tour.entries]
    return parts.card(
        "The ledger",
        "Each question is written to a file before its noise is drawn: who asked, what exactly, with which mechanisms. "
        "The entries form a chain, so that a change to any of them shows. The first entry opened the ledger.",
        parts.table(["entry", "time", "cost", "noise", "what was asked, in canonical form"], rows),
        note=f"Head of the chain: {tour.head}. {tour.checked} charges were checked against their mechanisms.",
    )


def _mechanisms(entry: Entry) -> str:
    names = [str(part["mechanism"]) for part in entry.parts]
    return ", ".join(f"{names.count(name)} × {name}" for name in dict.fromkeys(names))


def _asked(entry: Entry) -> str:
    """The beginning of the canonical question."""
    asked = " ".join(json.loads(entry.question)["asked"])
    return asked if len(asked) <= _LONGEST else f"{asked[:_LONGEST]}…"
