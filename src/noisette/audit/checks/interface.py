"""Does the mechanism name its relation, refuse what it cannot use without quoting it, and answer on its lattice?"""

import math
import traceback
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from noisette.audit import subject
from noisette.audit.checks.privacy import claims_pure
from noisette.audit.finding import Effort, Finding, found
from noisette.audit.subject import Subject
from noisette.errors import InputError, NoisetteError, PrivacyError
from noisette.mechanisms.calibration import calibrate
from noisette.mechanisms.contract import Mechanism, Output
from noisette.mechanisms.options import options_of
from noisette.privacy import ZCDP, Neighbours, Promise, Pure, sensitivity
from noisette.privacy.sensitivity import Sensitivity

__all__ = [
    "ONE",
    "SECRET",
    "is_sentence",
    "lattice",
    "lost",
    "mishandled",
    "refusals",
    "refusals_of",
    "relations",
    "shown",
]

SECRET = 987654
_SHOWN = 3  # faults in a witness
ONE = {relation: Sensitivity(1, 1, 1, 1, neighbours=relation) for relation in Neighbours}


def _raises(error: type[NoisetteError], call: Callable[[], Any]) -> bool:
    try:
        call()
    except error:
        return True
    return False


def _options(m: Subject) -> dict[str, Any]:
    """What `calibrated` cannot do without, as the mechanism has it."""
    kind: type[Mechanism] = type(m)
    return {name: getattr(m, name) for name, needed in options_of(kind).items() if needed}


def _replaced_histogram(m: Subject) -> Promise:
    """What replacing a person in a histogram must cost: two cells move by one each."""
    if m.kind is Output.NUMBERS and m.norm == math.inf:  # each number is a release of its own
        return Pure(2 * m.guarantee(1).size)
    promise: Promise = m.guarantee({1: 2, 2: sensitivity.histogram(neighbours=Neighbours.REPLACE).l2}.get(m.norm, 1))
    return promise


def _relation_faults(m: Subject) -> Iterator[tuple[bool, str]]:
    if m.kind is Output.REPORT:  # how many people report is public
        taken = not _raises(InputError, lambda: m.guarantee(ONE[Neighbours.ADD_REMOVE]))
        yield taken, "A distance under add/remove is taken, and reports promise nothing there."
    else:
        yield from (lost(m.guarantee(moved), relation) for relation, moved in ONE.items())
        replaced, due = m.guarantee(sensitivity.histogram(neighbours=Neighbours.REPLACE)), _replaced_histogram(m)
        said = f"Replacing a person in a histogram has {replaced}, expected"
        yield not math.isclose(replaced.size, due.size, rel_tol=1e-9), f"{said} the size of {due}."
        added = m.guarantee(sensitivity.histogram())
        yield replaced.size < added.size, f"{said} no less than {added}."
    yield lost(m.guarantee(ONE[Neighbours.REPLACE]), Neighbours.REPLACE)
    promise = (Pure if claims_pure(m) else ZCDP)(1, neighbours=Neighbours.ADD_REMOVE)
    mixed = ONE[Neighbours.REPLACE]
    taken = not _raises(PrivacyError, lambda: calibrate(type(m), promise, sensitivity=mixed, **_options(m)))
    yield taken, f"It is calibrated for {promise} and a sensitivity under replace, expected a refusal."


def lost(guarantee: Any, relation: Neighbours) -> tuple[bool, str]:
    """Tell whether a guarantee names another relation than the sensitivity that it is for, and show it."""
    named = guarantee.neighbours
    return named is not relation, f"A sensitivity under {relation} has a guarantee under {named or 'no relation'}."


def relations(m: Subject, _: Effort) -> Finding:
    """A guarantee carries the relation of its sensitivity, replacing costs its due, and relations do not mix."""
    sentences = "Guarantees name their neighbouring relation.", "A neighbouring relation is lost, mixed or too cheap."
    faults = [said for fault, said in _relation_faults(m) if fault]
    return found("relations", len(faults), 0, sentences, witness=lambda: shown(faults))


def shown(faults: Sequence[str]) -> str:
    """The first few faults, and how many more there are.

    >>> shown(["One.", "Two.", "Three.", "Four."])
    'One. Two. Three. (1 more)'
    """
    more = [f"({len(faults) - _SHOWN} more)"] if len(faults) > _SHOWN else []
    return " ".join([*faults[:_SHOWN], *more])


def unusable_answers(m: Subject) -> list[Any]:
    """Return answers that no mechanism may take, some of them with a secret inside."""
    size = m.dimension if m.kind is Output.VECTOR else 2
    filler = [SECRET] * (size - 1)
    alone: list[Any] = [math.nan, math.inf, -math.inf, True, np.True_, "", str(SECRET), None, 1j, b"1", {}, object()]
    lists: list[Any] = [[v, *filler] for v in (math.nan, math.inf, "", None, 1j, Decimal("nan"), Decimal("snan"))]
    ragged = [[SECRET], [SECRET, 3]]
    fractional = [[SECRET + 0.25] * size] if subject.is_whole(m) else []
    outside = {Output.REPORT: [SECRET, -1], Output.GROUPS: [-1]}.get(m.kind, [])
    return [*alone, *lists, [], ragged, [True] * size, np.array([np.nan] * size, object), *fractional, *outside]


def mishandled(call: Callable[[], Any]) -> str | None:
    """What comes instead of an InputError of one sentence that quotes nothing, chained errors included; or None."""
    try:
        call()
    except InputError as error:
        text = str(error)
        if not is_sentence(text):
            return "is refused by something else than one sentence"
        quoted = str(SECRET) in "".join(traceback.format_exception(error))
        return "is quoted by its refusal" if quoted else None
    except Exception as error:
        return f"raises {type(error).__name__}"
    return "is accepted"


def is_sentence(text: str) -> bool:
    """Tell whether a text is one sentence.

    >>> is_sentence("The answer must be a number."), is_sentence("No. Not so."), is_sentence("no")
    (True, False, False)
    """
    return text.endswith(".") and "\n" not in text and ". " not in text


def refusals_of(
    inputs: Sequence[Any], parameters: Sequence[Any], call: Callable[[Any], Any], make: Callable[[Any], Any]
) -> Finding:
    """Judge how unusable answers and parameters are refused."""
    tried = [(f"The input {x!r}", mishandled(lambda x=x: call(x))) for x in inputs]  # type: ignore[misc]
    tried += [(f"The parameter {e!r}", mishandled(lambda e=e: make(e))) for e in parameters]  # type: ignore[misc]
    faults = [f"{given} {instead}." for given, instead in tried if instead is not None]
    sentences = (
        "Unusable inputs are refused, and no error quotes them.",
        f"{len(faults)} kinds of input are mishandled.",
    )
    return found("refusals", len(faults), 0, sentences, witness=lambda: shown(faults))


def refusals(m: Subject, _: Effort) -> Finding:
    """Unusable answers and parameters are InputErrors of one sentence, without a digit of the data."""

    def calibrated(value: Any) -> Any:
        return calibrate(type(m), Pure(value) if claims_pure(m) else ZCDP(value), **_options(m))

    parameters: list[Any] = [0, -1, "1e400", True, math.nan, math.inf, "", None, [], "1/0"]
    return refusals_of(unusable_answers(m), parameters, m, calibrated)


def _off_lattice(m: Subject, draws: Any, size: Fraction) -> list[str]:
    """The draws that are not the float nearest to a multiple of the step, or not whole numbers (or bits) by type."""
    if subject.is_whole(m):
        return (
            []
            if draws.dtype.kind in "biuO"
            else [f"{y!r} is released, expected a whole number." for y in draws.ravel().tolist()]
        )
    off = [y for y in draws.ravel().tolist() if float(round(Fraction(y) / size) * size) != y]
    return [f"{y!r} is released, expected a multiple of {size}." for y in off]


def lattice(m: Subject, _: Effort) -> Finding:
    """Every release is a multiple of the declared step, and an output that the law knows."""
    x = subject.plain(m, m.pairs()[0][0])
    singles = subject.one_by_one(m, x, 200)
    faults = _off_lattice(m, singles, subject.step(m))
    faults += [
        f"{y} is released of {x}, and the law knows no such output."
        for y in singles[np.asarray(m.pmf(singles, x)) <= 0].tolist()
    ]
    if not subject.is_vector(m):
        faults += _off_lattice(m, subject.many(m, x, 1000), subject.step(m, 1000))
    sentences = "Every release lies on the declared lattice.", "Releases lie off the declared lattice."
    return found("lattice", len(faults), 0, sentences, witness=lambda: shown(faults))
