"""What the data's owner declares: who is protected, how much of them is used, bounds, keys and the budget.

A policy is a dictionary, a TOML file that looks the same, or a `Policy` value:

    pinned = true               # false: nothing says in which state the data are

    [budget]
    epsilon = "2"
    delta = "1e-6"              # leave it out for pure epsilon; or rho = "0.5" alone
    neighbours = "add/remove"   # or "replace"

    [tables.visits]
    unit = "patient_id"         # leave it out if each row is a person by itself
    rows = 10                   # of one unit in all, and/or groups = 3 and rows_per_group = 1

    [tables.visits.columns.age]
    bounds = [0, 120]
    nullable = false

    [tables.visits.columns.ward]
    keys = ["north", "south"]

    [tables.wards]
    public = true

    [rules]                     # of the house: see `house_rules`
    minimum_frequency = 10

Columns that are not named keep what the stored type says: nothing is looked up in the data.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from noisette.errors import InputError
from noisette.policy.house_rules import HouseRules, house_rules
from noisette.policy.rules import TableRules, inside, only, policy_error, section, table_rules
from noisette.policy.toml import as_toml
from noisette.privacy import ZCDP, Approx, Neighbours, Promise, Pure

__all__ = ["Policy", "read_policy", "toml_of"]

_FORMS = 'epsilon = "2", with or without delta = "1e-6", or rho = "0.5"'


@dataclass(frozen=True)
class Policy:
    """The owner's declarations: `budget`, the relation it is meant under, rules for each table, `rules` of the house.

    `pinned` is false where nothing says in which state the data are: repeated questions are charged again.

    >>> print(Policy(Pure(1)).to_toml().splitlines()[3])
    epsilon = "1"
    """

    budget: Promise
    tables: Mapping[str, TableRules] = field(default_factory=dict)
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    rules: HouseRules = field(default_factory=HouseRules)
    pinned: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.budget, Pure | Approx | ZCDP):
            raise InputError("The budget of a policy must be Pure, Approx or ZCDP, such as Approx(2, '1e-6').")
        if self.budget.neighbours not in (None, self.neighbours):
            raise InputError(f"The budget is meant under {self.budget.neighbours}, the policy under {self.neighbours}.")
        object.__setattr__(self, "budget", _bare(self.budget))
        object.__setattr__(self, "tables", dict(self.tables))

    def to_toml(self) -> str:
        """The policy as a commented TOML file, to be edited by hand; `read_policy` makes the same policy of it."""
        return as_toml(self.budget, self.neighbours, self.tables, self.rules.lines, pinned=self.pinned)


def _bare(budget: Promise) -> Promise:
    """The promise itself, above 0, without the relation that the policy names."""
    if budget.size <= 0:
        raise InputError("The budget must be above 0: without one nothing can be released.")
    return type(budget)(*budget.numbers.values())


def read_policy(given: Policy | Mapping[str, Any] | str | Path | None, budget: Promise | None = None) -> Policy:
    """A policy from a value, a dictionary or a TOML file; `budget` is for one that names none.

    >>> read_policy({"budget": {"epsilon": "2", "delta": "1e-6"}}).budget
    Approx('2', '1/1000000')
    """
    if isinstance(given, Policy):
        return _agreed(given, budget)
    if isinstance(given, str | Path):
        given = toml_of(Path(given))
    if given is not None and not isinstance(given, Mapping):
        raise InputError("policy must be a Policy, a dictionary or the path of a TOML file.")
    whole = given or {}
    only(whole, ("budget", "tables", "rules", "pinned"), "")
    pinned = whole.get("pinned", True)
    if not isinstance(pinned, bool):
        raise policy_error("pinned", "must be true, or false where nothing says in which state the data are.")
    money = section(whole.get("budget", {}), "budget")
    only(money, ("epsilon", "delta", "rho", "neighbours"), "budget")
    relation = _relation(money, budget)
    tables = section(whole.get("tables", {}), "tables")
    rules = {name: table_rules(part, inside("tables", name)) for name, part in tables.items()}
    house = house_rules(whole.get("rules", {}))
    if set(money) - {"neighbours"}:
        return _agreed(Policy(_promise(money), rules, relation, house, pinned), budget)
    if budget is None:
        raise InputError("Say how much may be spent in all: budget=1, budget=Approx(2, '1e-6'), or a [budget] section.")
    return Policy(budget, rules, relation, house, pinned)


def _agreed(policy: Policy, budget: Promise | None) -> Policy:
    if budget is not None and _bare(budget) != policy.budget:
        raise InputError("The policy names another budget: leave budget= out, or take it out of the policy.")
    return policy


def toml_of(path: Path) -> dict[str, Any]:
    """What a policy file says, before it is checked."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError:
        raise InputError(f"The policy file {path.name} cannot be read: check its path and its permissions.") from None
    except UnicodeDecodeError:
        raise InputError(f"The policy file {path.name} is not a text: save it as UTF-8.") from None
    except tomllib.TOMLDecodeError as fault:
        what, _, place = str(fault).removesuffix(")").rpartition(" (at ")  # as the parser ends each of its messages
        raise InputError(
            f"The policy file {path.name} is not valid TOML at {place}: {what[:1].lower()}{what[1:]}."
        ) from None


def _relation(given: Mapping[str, Any], budget: Promise | None) -> Neighbours:
    if "neighbours" not in given:
        return (budget.neighbours if budget is not None else None) or Neighbours.ADD_REMOVE
    found = [relation for relation in Neighbours if relation.value == given["neighbours"]]
    if not found:
        raise policy_error("budget.neighbours", 'must be "add/remove" or "replace".')
    return found[0]


def _promise(given: Mapping[str, Any]) -> Promise:
    if ("rho" in given) == ("epsilon" in given) or ("rho" in given and "delta" in given):
        raise policy_error("budget", f"must be one of {_FORMS}.")
    try:
        if "rho" in given:
            return ZCDP(given["rho"])
        return Approx(given["epsilon"], given["delta"]) if "delta" in given else Pure(given["epsilon"])
    except InputError as fault:
        raise InputError(f"The budget in the policy cannot be used: {fault}") from None
