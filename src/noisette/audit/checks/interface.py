"""Does the mechanism name its relation, refuse what it cannot use without quoting it, and answer on its lattice?"""

import inspect
import math
import traceback
from collections.abc import Callable, Iterator
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
from noisette.mechanisms.contract import Output
from noisette.privacy import ZCDP, Neighbours, Promise, Pure, sensitivity
from noisette.privacy.sensitivity import Sensitivity

__all__ = ["ONE", "SECRET", "lattice", "refusals", "refused", "relations"]

SECRET = 987654
ONE = {relation: Sensitivity(1, 1, 1, 1, neighbours=relation) for relation in Neighbours}


def _raises(error: type[NoisetteError], call: Callable[[], Any]) -> bool:
    try:
        call()
    except error:
        return True
    return False


def _options(m: Subject) -> dict[str, Any]:
    """What `calibrated` cannot do without, as the mechanism has it."""
    needed = inspect.signature(type(m).calibrated).parameters.values()
    return {p.name: getattr(m, p.name) for p in needed if p.kind is p.KEYWORD_ONLY and p.default is p.empty}


def _replaced_histogram(m: Subject) -> Promise:
    """What replacing a person in a histogram must cost: two cells move by one each."""
    if m.kind is Output.NUMBERS and m.norm == math.inf:  # each number is a release of its own
        return Pure(2 * m.guarantee(1).size)
    promise: Promise = m.guarantee({1: 2, 2: sensitivity.histogram(neighbours=Neighbours.REPLACE).l2}.get(m.norm, 1))
    return promise


def _relation_faults(m: Subject) -> Iterator[bool]:
    if m.kind is Output.REPORT:  # how many people report is public
        yield not _raises(InputError, lambda: m.guarantee(ONE[Neighbours.ADD_REMOVE]))
    else:
        yield from (m.guarantee(moved).neighbours is not relation for relation, moved in ONE.items())
        replaced = m.guarantee(sensitivity.histogram(neighbours=Neighbours.REPLACE))
        yield not math.isclose(replaced.size, _replaced_histogram(m).size, rel_tol=1e-9)
        yield replaced.size < m.guarantee(sensitivity.histogram()).size
    yield m.guarantee(ONE[Neighbours.REPLACE]).neighbours is not Neighbours.REPLACE
    promise = (Pure if claims_pure(m) else ZCDP)(1, neighbours=Neighbours.ADD_REMOVE)
    mixed = ONE[Neighbours.REPLACE]
    yield not _raises(PrivacyError, lambda: calibrate(type(m), promise, sensitivity=mixed, **_options(m)))


def relations(m: Subject, _: Effort) -> Finding:
    """A guarantee carries the relation of its sensitivity, replacing costs its due, and relations do not mix."""
    sentences = "Guarantees name their neighbouring relation.", "A neighbouring relation is lost, mixed or too cheap."
    return found("relations", sum(_relation_faults(m)), 0, sentences)


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


def refused(call: Callable[[], Any]) -> bool:
    """Tell whether a call is refused in one sentence that quotes nothing, chained errors included."""
    try:
        call()
    except InputError as error:
        text = str(error)
        shown = "".join(traceback.format_exception(error))
        return text.endswith(".") and "\n" not in text and ". " not in text and str(SECRET) not in shown
    except Exception:
        return False
    return False


def refusals(m: Subject, _: Effort) -> Finding:
    """Unusable answers and parameters are InputErrors of one sentence, without a digit of the data."""

    def calibrated(value: Any) -> Any:
        return calibrate(type(m), Pure(value) if claims_pure(m) else ZCDP(value), **_options(m))

    parameters: list[Any] = [0, -1, "1e400", True, math.nan, math.inf, "", None, [], "1/0"]
    accepted = [x for x in unusable_answers(m) if not refused(lambda x=x: m(x))]  # type: ignore[misc]
    accepted += [e for e in parameters if not refused(lambda e=e: calibrated(e))]  # type: ignore[misc]
    sentences = (
        "Unusable inputs are refused, and no error quotes them.",
        f"{len(accepted)} kinds of input are mishandled.",
    )
    return found("refusals", len(accepted), 0, sentences)


def _off_lattice(m: Subject, draws: Any, size: Fraction) -> int:
    """How many draws are not the float nearest to a multiple of the step, or not whole numbers (or bits) by type."""
    if subject.is_whole(m):
        return 0 if draws.dtype.kind in "biuO" else draws.size
    return sum(float(round(Fraction(y) / size) * size) != y for y in draws.ravel().tolist())


def lattice(m: Subject, _: Effort) -> Finding:
    """Every release is a multiple of the declared step, and an output that the law knows."""
    x = subject.plain(m, m.pairs()[0][0])
    singles = subject.one_by_one(m, x, 200)
    faults = _off_lattice(m, singles, subject.step(m)) + int(np.sum(np.asarray(m.pmf(singles, x)) <= 0))
    if not subject.is_vector(m):
        faults += _off_lattice(m, subject.many(m, x, 1000), subject.step(m, 1000))
    sentences = "Every release lies on the declared lattice.", "Releases lie off the declared lattice."
    return found("lattice", faults, 0, sentences)
