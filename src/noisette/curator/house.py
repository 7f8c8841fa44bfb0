"""The rules of the house where questions are asked: what is refused or waits, and how numbers are printed.

Nothing here reads data or decides by it. What a minimum frequency suppresses is decided where noise is drawn
(`query.draw`), and small differences of filters by numbers that were released (`differences`).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow

from noisette.answers import Column
from noisette.answers.figures import bound, promise
from noisette.answers.figures import rounded as figure
from noisette.errors import BudgetError, InputError
from noisette.ledger import Ledger
from noisette.ledger.approvals import Request
from noisette.policy.house_rules import HouseRules, beside, within
from noisette.policy.policy import Policy
from noisette.privacy import Promise, Pure
from noisette.query.expected import Expected
from noisette.questions.contract import Offer
from noisette.questions.parts.queries import measuring

__all__ = ["Asking", "admissible", "admit", "check_stream", "kept", "most_delta", "notes", "rounded", "widened"]

_RECORDED = ("rounding", "largest_spend", "approval_above", "least_difference")


@dataclass(frozen=True)
class Asking:
    """What is asked, as far as a rule needs to know it: the text, what is spent, by whom, and its key in the ledger."""

    text: str
    spend: Promise
    analyst: str | None
    key: str

    @property
    def request(self) -> Request:
        """What the owner is asked to approve."""
        return Request(self.key, self.text, self.spend, self.analyst)


# Before anything is charged


def kept(policy: Policy, offer: Offer) -> Offer:
    """An offer that says which rules it keeps; raise InputError if it cannot keep a minimum frequency."""
    rules = policy.rules
    if rules.frequency is not None and measuring(offer.procedure) is None:
        raise InputError(
            f"The policy asks for at least {rules.frequency.units:,} {offer.unit}s behind every group, which only SQL "
            "and a table's methods keep: ask for counts, sums, means or quantiles with GROUP BY."
        )
    said, more = {**offer.rules, **_recorded(policy)}, []
    if rules.rounding is not None:
        step, half = bound(rules.rounding), bound(rules.rounding / 2)
        more.append(
            f"Numbers are rounded to multiples of {step}, and error bars are wider by {half} on each side for it."
        )
    if rules.least_difference is not None:
        more.append(
            f"Groups whose noisy number of {offer.unit}s differs by fewer than {rules.least_difference:,} from that of "
            "an earlier question with one condition more or less are suppressed."
        )

    def with_rules(found: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
        return [(*more, *caveats) for caveats in found]

    later = offer.found
    found = None if later is None else lambda drawn: with_rules(later(drawn))
    return replace(offer, rules=said, caveats=with_rules(offer.caveats), found=found)


def _recorded(policy: Policy) -> dict[str, Any]:
    """The rules for the record of an answer, except the minimum frequency, which its offer knows."""
    known = {name: str(value) for name, (value, _) in policy.rules.lines.items() if name in _RECORDED}
    columns = _not_grouped(policy)
    return {**known, **({"not_grouped": columns} if columns else {})}


def _not_grouped(policy: Policy) -> list[str]:
    tables = policy.tables.items()
    return [f"{name}.{c}" for name, table in tables for c, column in table.columns.items() if not column.group]


def check_stream(rules: HouseRules) -> None:
    """Refuse streams where numbers must be rounded or groups have a minimum frequency."""
    if rules.frequency is not None or rules.rounding is not None:
        rule = "minimum_frequency" if rules.frequency is not None else "rounding"
        raise InputError(f"A stream cannot keep {rule} of the policy: ask in SQL, or let the owner take the rule out.")


def admissible(policy: Policy, spend: Promise) -> bool:
    """Whether a spend is neither above the largest one nor waits for the owner's approval."""
    return all(limit is None or _fits(policy, spend, limit) for limit in _limits(policy))


def most_delta(policy: Policy) -> Fraction | None:
    """The most delta of a question that is admitted whatever its epsilon; None if no rule limits it."""
    limits = [limit for limit in _limits(policy) if limit is not None]
    return min((beside(policy.budget) if isinstance(limit, Pure) else limit.delta for limit in limits), default=None)


def _limits(policy: Policy) -> tuple[Promise | None, Promise | None]:
    return policy.rules.largest_spend, policy.rules.approval_above


def _fits(policy: Policy, spend: Promise, limit: Promise) -> bool:
    return within(spend, limit, beside(policy.budget))


def admit(policy: Policy, ledger: Ledger, asking: Asking) -> None:
    """Refuse a spend above the largest one, and one that waits for the owner's approval; neither costs anything.

    What was answered before is answered again.
    """
    if admissible(policy, asking.spend) or ledger.answer(asking.key) is not None:
        return
    largest, limit = _limits(policy)
    if largest is not None and not _fits(policy, asking.spend, largest):
        raise BudgetError(f"{_largest(policy, largest, asking.spend)}: spend less on it, or ask the owner.")
    if limit is None or _fits(policy, asking.spend, limit):
        return
    state = ledger.request(asking.request).state
    if state == "declined":
        raise BudgetError(
            f"The owner declined this question ({asking.request.id}): "
            f"spend {_written(policy, limit, asking.spend)} at most on it."
        )
    if state == "pending":
        raise BudgetError(
            f"{_waits(policy, limit, asking)}: the owner can allow it (`noisette approve {asking.request.id}`, or "
            "ledger.approve in Python), then ask it again; until then it costs nothing."
        )


def notes(policy: Policy, ledger: Ledger, asking: Asking) -> tuple[str, ...]:
    """What an explanation says about columns and spends."""
    found, rules = [f"{name} may be filtered but not grouped." for name in _not_grouped(policy)], policy.rules
    if rules.largest_spend is not None:
        refused = not _fits(policy, asking.spend, rules.largest_spend)
        said = _largest(policy, rules.largest_spend, asking.spend)
        found.append(f"{said}{', so it would be refused' if refused else ''}.")
    if rules.approval_above is not None:
        found.append(_approval(policy, rules.approval_above, ledger, asking))
    return tuple(found)


def _approval(policy: Policy, limit: Promise, ledger: Ledger, asking: Asking) -> str:
    if _fits(policy, asking.spend, limit):
        most = _written(policy, limit, asking.spend)
        return f"Questions that spend more than {most} wait for the owner's approval, and this one does not."
    state = {request.key: request.state for request in ledger.requests}.get(asking.key, "pending")
    if state != "pending":
        return f"The owner {state} this question as {asking.request.id}."
    return f"{_waits(policy, limit, asking)}, as {asking.request.id}."


def _largest(policy: Policy, limit: Promise, spend: Promise) -> str:
    most = _written(policy, limit, spend)
    return f"The policy lets one question spend {most} at most and this one spends {promise(spend)}"


def _waits(policy: Policy, limit: Promise, asking: Asking) -> str:
    most = _written(policy, limit, asking.spend)
    return f"This question spends more than {most} and waits for the owner's approval"


def _written(policy: Policy, limit: Promise, spend: Promise) -> str:
    """A limit as a sentence says it: with the delta that it leaves room for, where that is about the spend.

    A delta is rounded down, so that who spends what is written is admitted.
    """
    room = beside(policy.budget)
    if not isinstance(limit, Pure) or not spend.delta:
        return promise(limit)
    return f"{promise(limit)}, δ = {figure(room, up=False, digits=3)}" if room else f"{promise(limit)} without a δ"


# How numbers are printed


def rounded(columns: Iterable[Column], step: Fraction | None) -> tuple[Column, ...]:
    """Numbers as multiples of a step; bars reach as far from them as before, and half a step more on each side.

    The number before rounding is at most half a step away, so what was within its bar is within the new one.

    >>> n = Column("n", pyarrow.array([12]), np.array([8.0]), np.array([16.0]))
    >>> [made] = rounded([n], Fraction(5))
    >>> made.values.to_pylist(), made.low.tolist(), made.high.tolist()
    ([10], [3.5], [16.5])
    """
    return tuple(columns) if step is None else tuple(_rounded(c, step) if c.measured else c for c in columns)


def _rounded(column: Column, step: Fraction) -> Column:
    values = np.asarray(column.values.to_numpy(zero_copy_only=False), dtype=float)
    hidden = np.asarray(column.values.is_null())
    multiples = np.rint(np.where(hidden, 0.0, values) / float(step)) * float(step)
    whole = pyarrow.types.is_integer(column.values.type) and step.denominator == 1
    printed = pyarrow.array(multiples.astype(np.int64) if whole else multiples, mask=hidden)
    (low, high), half = column.unmoved, float(step / 2)
    below, above = multiples - (values - low + half), multiples + (high - values + half)
    ends = np.where(hidden, low, below), np.where(hidden, high, above)
    return Column(column.name, printed, *ends, adds=column.adds).within(column.span)


def widened(expected: tuple[Expected, ...], step: Fraction | None) -> tuple[Expected, ...]:
    """The error to expect of numbers that are rounded."""
    if step is None:
        return expected
    half = float(step / 2)

    def wider(one: Expected) -> Expected:
        same = None if one.half_width is None else one.half_width + half
        sizes = {rows: width + half for rows, width in one.by_size.items()}
        limits = {limit: wider(other) for limit, other in one.by_limit.items()}
        return replace(one, half_width=same, by_size=sizes, by_limit=limits)

    return tuple(wider(one) for one in expected)
