"""A durable ledger decides like a filter, charges once for a key, and remembers everything when it is opened again."""

import threading
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ledger.tools import RELATION, counted

import noisette as nz
from noisette.errors import BudgetError, InputError, PrivacyError
from noisette.ledger import Memory, open_ledger
from noisette.ledger.accounts import Account, Parts
from noisette.ledger.entry import Entry, charge_body, checked, covers
from noisette.privacy import ZCDP, Approx, Filter, Neighbours, Pure

GAUSSIAN = nz.Gaussian(50).guarantee(1)
BUDGETS = [
    (Pure(1), [Pure("0.3"), Pure("1/3"), Pure("0.4"), Pure("0.3")]),
    (ZCDP("0.1"), [ZCDP("0.03"), Pure("0.2"), GAUSSIAN, ZCDP("0.09")]),
    (Approx(1, "1e-6"), [Pure("0.5"), Approx("0.1", "1e-7"), GAUSSIAN, Approx("0.1", "6e-7"), Pure(1)]),
    (Approx(1, "1e-6"), [GAUSSIAN, GAUSSIAN, Pure("0.2"), Pure(2)]),
]


def decisions(ledger, costs):
    """What happens to each cost, with what is spent and left then."""
    found = []
    for cost in costs:
        allowed = ledger.allows(cost)
        try:
            ledger.charge("a question", cost, [])
            found.append((allowed, True, ledger.spent, ledger.left))
        except BudgetError as refusal:
            found.append((allowed, str(refusal), ledger.spent, ledger.left))
    return found


@pytest.mark.slow_after(3)
@pytest.mark.parametrize(("budget", "costs"), BUDGETS)
def test_it_decides_like_a_ledger_in_memory_and_a_filter(where, budget, costs):
    book = open_ledger(where, budget=budget)
    found = decisions(book, costs)
    assert found == decisions(Memory(budget), costs)
    d = budget.delta
    parts = {"reserve": d / 10, "plain": d / 20, "rule": "both"} if isinstance(budget, Approx) else {}
    alone = Filter(budget, **parts)
    for cost, (_, happened, *_) in zip(costs, found, strict=True):
        if happened is True:
            alone.charge(cost)
    assert (alone.spent, alone.left) == (book.spent, book.left)
    book.close()
    again = open_ledger(where)
    assert (again.spent, again.left, again.budget) == (alone.spent, alone.left, budget)
    assert again.verify() == again.head()
    again.close()


@pytest.mark.slow
@given(st.lists(st.fractions(0, 1, max_denominator=10**6), max_size=30))
def test_sums_are_written_and_read_exactly(costs):
    account = Account.of(Pure(100))
    for cost in costs:
        account = Account.read(account.charged(Pure(cost, neighbours=RELATION)).text)
    assert account.state.total.epsilon == sum(costs)


@pytest.mark.slow
@settings(max_examples=20)
@given(st.lists(st.integers(2**60, 2**64), min_size=40, max_size=60))
def test_sums_stay_short_and_are_rounded_up(denominators):
    account, exact = Account.of(Pure(100)), Fraction(0)
    for number in denominators:
        account, exact = account.charged(Pure(Fraction(1, number))), exact + Fraction(1, number)
    total = account.state.total.epsilon
    assert exact <= total < exact + Fraction(1, 2**240)
    assert len(account.text) < 3000


def test_an_entry_says_what_was_done_and_can_be_checked(where):
    guarantee, parts = counted()
    with_losses = open_ledger(where, budget=Approx(1, "1e-6"))
    entry = with_losses.charge("how many?", guarantee, parts, analyst="ana", key="k1")
    body = with_losses.history[-1]
    assert (body["format"], body["kind"], body["number"], body["analyst"]) == (1, "charge", entry.number, "ana")
    assert (body["question"], body["key"], body["neighbours"]) == ("how many?", "k1", "add/remove")
    assert body["guarantee"] == {"kind": "Pure", "epsilon": "1/10"}
    assert body["mechanisms"] == parts
    assert with_losses.entries == (entry,)
    assert with_losses.entries[0].guarantee.losses == guarantee.losses  # rebuilt from the mechanisms, losses and all
    assert with_losses.check() == 1
    with_losses.close()


@pytest.mark.parametrize(
    "cost",
    [
        Approx("1/10", "1e-9", neighbours=RELATION),
        ZCDP("1/1000", neighbours=RELATION),
        Pure("1/20", neighbours=RELATION),
    ],
)
def test_a_claim_that_its_mechanisms_do_not_keep_is_found(tmp_path, cost):
    _, parts = counted()
    book = open_ledger(tmp_path / "x.ledger", budget=Approx(1, "1e-6"))
    book.charge("a count", Pure("1/10", neighbours=RELATION), parts)
    assert book.check() == 1
    book.charge("a count", cost, parts)
    if isinstance(cost, Approx):
        assert book.check() == 2  # weaker than what the mechanisms promise is no fault
    else:
        with pytest.raises(PrivacyError, match="Entry 3 of the ledger claims more"):
            book.check()
    book.close()


def test_entries_of_mechanisms_that_are_unknown_keep_their_statement(tmp_path):
    book = open_ledger(tmp_path / "x.ledger", budget=Pure(1))
    book.charge("a count", Pure("0.1"), [{"mechanism": "Later", "parameters": {}}])
    assert book.entries[0].guarantee == Pure("0.1")
    with pytest.raises(InputError, match="Entry 2 cannot be checked by this version"):
        book.check()
    book.close()


def test_the_tight_figure_is_that_of_all_entries_together(where):
    guarantee, parts = counted(20)
    book, memory = open_ledger(where, budget=Approx(2, "1e-6")), Memory(Approx(2, "1e-6"))
    for _ in range(30):
        book.charge("a count", guarantee, parts)
        memory.charge("a count", guarantee, parts)
    assert book.tight("1e-6") == memory.tight("1e-6") == (guarantee * 30).epsilon_at("1e-6")
    assert book.tight("1e-6") < book.spent.epsilon
    book.close()


def test_relations_do_not_mix(where):
    book = open_ledger(where, budget=Pure(1))
    book.charge("one", Pure("0.1", neighbours=Neighbours.REPLACE), [])
    with pytest.raises(PrivacyError, match="does not add"):
        book.charge("two", Pure("0.1", neighbours=Neighbours.ADD_REMOVE), [])
    assert len(book.entries) == 1
    book.close()


def test_a_budget_may_name_its_relation(where):
    book = open_ledger(where, budget=Pure(1, neighbours=Neighbours.REPLACE))
    with pytest.raises(PrivacyError, match="does not add"):
        book.charge("q", Pure("0.1", neighbours=Neighbours.ADD_REMOVE), [])
    book.charge("q", Pure("0.1"), [])
    with pytest.raises(PrivacyError, match="does not add"):
        book.raise_budget(Pure(2, neighbours=Neighbours.ADD_REMOVE), why="a mistake")
    book.raise_budget(Pure(2), why="more")
    book.close()
    again = open_ledger(where)
    assert again.left == Pure("1.9", neighbours=Neighbours.REPLACE)
    again.close()


# Keys and answers


def test_a_key_is_charged_once_whenever_it_comes_again(where):
    guarantee, parts = counted()
    book = open_ledger(where, budget=Pure(1))
    first = book.charge("how many?", guarantee, parts, key="k")
    assert book.charge("how many?", guarantee, parts, key="k") == first
    book.close()
    again = open_ledger(where, budget=Pure(1))
    assert again.charge("how many?", guarantee, parts, key="k") == first
    assert again.spent.epsilon == Fraction(1, 10)
    for other in [
        ("how old?", guarantee, parts, None),
        ("how many?", Pure("0.2", neighbours=RELATION), parts, None),
        ("how many?", guarantee, [], None),
        ("how many?", guarantee, parts, "bob"),
    ]:
        with pytest.raises(InputError, match="used for another question"):
            again.charge(*other[:3], key="k", analyst=other[3])
    assert len(again.entries) == 1
    again.close()


def test_a_key_is_charged_once_by_many_threads(where):
    book = open_ledger(where, budget=Pure(1))
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(book.charge("q", Pure("0.1"), [], key="k").number))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [2] * 8
    assert len(book.entries) == 1
    book.close()


def test_a_key_that_is_known_needs_no_budget(where):
    book = open_ledger(where, budget=Pure(1))
    first = book.charge("q", Pure(1), [], key="k")
    assert book.charge("q", Pure(1), [], key="k") == first
    with pytest.raises(BudgetError):
        book.charge("q", Pure(1), [], key="l")
    book.close()


def test_the_first_answer_that_is_kept_is_the_answer(where):
    book = open_ledger(where, budget=Pure(1))
    with pytest.raises(PrivacyError, match="charge first"):
        book.keep("k", b"42")
    book.charge("q", Pure("0.1"), [], key="k")
    assert book.answer("k") is None
    assert book.keep("k", b"\x0042") == b"\x0042"
    assert book.keep("k", b"43") == b"\x0042"
    book.close()
    again = open_ledger(where)
    assert again.answer("k") == b"\x0042"
    again.close()


@pytest.mark.parametrize("text", ["", "a\x00b", "\ud800", "x" * 201, "new\nline", 7])
def test_odd_names_are_refused(tmp_path, text):
    book = open_ledger(tmp_path / "x.ledger", budget=Pure(1))
    for name in ("key", "analyst"):
        with pytest.raises(InputError, match=f"The {name} must be a text"):
            book.charge("q", Pure("0.1"), [], **{name: text})
    assert book.entries == ()
    book.close()


def test_any_question_can_be_written(where):
    book = open_ledger(where, budget=Pure(1))
    for text in ["", "a\x00b", "\ud800", "naïve ☃ 'x' \"y\" \\ %s ?", "x" * 10**5]:
        book.charge(text, Pure("0.1"), [])
        assert book.entries[-1].question == text
    book.verify()
    book.close()


def test_clocks_may_jump(where):
    times = iter(["2026-01-01T00:00:00+00:00", "2025-01-01T00:00:00+00:00", "2027-01-01T00:00:00+00:00", ""])
    book = open_ledger(where, budget=Pure(1), clock=lambda: next(times))
    for _ in range(4):
        book.charge("q", Pure("0.1"), [])
    assert [entry.number for entry in book.entries] == [2, 3, 4, 5]
    assert book.left == Pure("0.6")
    book.verify()
    book.close()


# Shares, and what the owner does


def test_a_share_is_a_second_filter(where):
    book = open_ledger(where, budget=Pure(1), shares={"ana": Pure("0.7"), "bob": Pure("0.7")})
    book.charge("q", Pure("0.6"), [], analyst="ana")
    assert not book.allows(Pure("0.2"), analyst="ana")
    assert book.allows(Pure("0.2"), analyst="bob")
    with pytest.raises(
        BudgetError, match=r"The share of ana has ε = 0\.1 left and this question costs ε = 0\.2: spend less"
    ):
        book.charge("q", Pure("0.2"), [], analyst="ana")
    with pytest.raises(BudgetError, match=r"The budget has ε = 0\.4 left"):
        book.charge("q", Pure("0.5"), [], analyst="bob")  # the share holds it, the budget does not
    for stranger in ("eve", None, ""):
        with pytest.raises((PrivacyError, InputError), match=r"no share|printable"):
            book.charge("q", Pure("0.1"), [], analyst=stranger)
    book.close()
    again = open_ledger(where)
    assert again.shares == {
        "ana": (Pure("0.7"), Pure("0.6"), Pure("0.1")),
        "bob": (Pure("0.7"), Pure(0), Pure("0.7")),
    }
    assert len(again.entries) == 1
    again.share({"ana": Pure("0.8"), "eve": Pure("0.1")}, why="more work")
    again.charge("q", Pure("0.2"), [], analyst="ana")
    again.charge("q", Pure("0.1"), [], analyst="eve")
    assert again.left == Pure("0.1")
    again.verify()
    again.close()


def test_memory_knows_shares_and_keys_too():
    memory = Memory(Pure(1), shares={"ana": Pure("0.5")})
    first = memory.charge("q", Pure("0.4"), [], analyst="ana", key="k")
    assert memory.charge("q", Pure("0.4"), [], analyst="ana", key="k") is first
    with pytest.raises(InputError, match="another question"):
        memory.charge("r", Pure("0.4"), [], analyst="ana", key="k")
    with pytest.raises(BudgetError):
        memory.charge("q", Pure("0.4"), [], analyst="ana")
    with pytest.raises(PrivacyError, match="no share"):
        memory.charge("q", Pure("0.4"), [])
    assert (len(memory.entries), memory.left) == (1, Pure("0.6"))


def test_a_budget_is_raised_by_an_entry(where):
    book = open_ledger(where, budget=Pure(1))
    book.charge("q", Pure(1), [])
    with pytest.raises(InputError, match="another budget"):
        open_ledger(where, budget=Pure(2))
    with pytest.raises(InputError, match="Say why"):
        book.raise_budget(Pure(2), why=" ")
    with pytest.raises(InputError, match="More was spent already"):
        book.raise_budget(Pure("0.5"), why="a mistake")
    book.raise_budget(Approx(2, "1e-6"), why="the board agreed")
    book.charge("q", Pure("0.5"), [])
    act = book.history[-2]
    assert (act["kind"], act["act"], act["why"], act["number"]) == ("act", "budget", "the board agreed", 3)
    book.close()
    again = open_ledger(where, budget=Approx(2, "1e-6"))
    assert [entry.number for entry in again.entries] == [2, 4]
    again.verify()
    again.close()


def test_a_new_ledger_needs_a_budget(where):
    with pytest.raises(InputError, match="no ledger yet"):
        open_ledger(where)
    open_ledger(where, budget=Pure(1)).close()


def test_two_ledgers_have_two_names(tmp_path):
    names = set()
    for i in range(2):
        book = open_ledger(tmp_path / f"{i}.ledger", budget=Pure(1))
        names.add(book.history[0]["dataset"])
        book.close()
    assert len(names) == 2


def test_entries_of_others_are_seen(where):
    one, other = open_ledger(where, budget=Pure(1)), open_ledger(where)
    for i in range(4):
        (one if i % 2 else other).charge(f"q{i}", Pure("0.1"), [])
        assert [entry.question for entry in one.entries] == [f"q{j}" for j in range(i + 1)]
        assert one.left == other.left
    one.close()
    other.close()


# Plain sums with Gaussian noise in them


def test_a_large_question_fits_after_a_small_one_with_gaussian_noise(where):
    book = open_ledger(where, budget=Approx(2, "1e-6"))
    book.charge("q", GAUSSIAN, [], key="k")
    body = book.history[-1]
    assert body["charge"]["eps"] is None
    assert Fraction(body["charge"]["plain"]) < Fraction(1, 5)
    assert book.left.epsilon > Fraction("1.8")
    book.charge("q", Pure("1.8"), [])
    spent, left = book.spent, book.left
    book.close()
    again = open_ledger(where)
    assert (again.spent, again.left) == (spent, left)
    again.verify()
    again.close()


def test_a_ledger_that_was_begun_without_it_stays_so(tmp_path):
    old = Account.of(Approx(2, "1e-6"), Parts()).charged(GAUSSIAN)
    assert Account.read(old.text) == old
    assert "plain" not in old.text.partition('"total"')[0]
    assert old.filter.left.epsilon < 1 < Account.of(Approx(2, "1e-6")).charged(GAUSSIAN).filter.left.epsilon
    assert not old.under(Approx(3, "1e-6")).parts.plain


def test_parts_of_delta_are_settled_when_the_ledger_opens(tmp_path):
    """An opening of today, one of the version before and one of the first: each keeps its rule."""
    budget = Approx(5, "1e-6")
    one = nz.Gaussian(10).guarantee(1)
    counts = {}
    for name, keys in (("tenth", None), ("half", "5e-7"), ("none", 0)):
        book = open_ledger(tmp_path / name, budget=budget, keys_delta=keys)
        assert book.standing().accounts[""].state.rule == "both"
        assert ("own" in book.history[0]) == (name != "half")  # a half is what the first version had
        counts[name] = next(k for k in range(200) if not book.allows(one, times=k + 1))
        assert book.left.delta == {"tenth": budget.delta / 10, "half": budget.delta / 2, "none": 0}[name]
        entry = book.charge("q", Pure("0.1"), [])
        assert entry.number
        book.close()
        open_ledger(tmp_path / name, keys_delta=keys).close()
        with pytest.raises(InputError, match="settled when the ledger opened"):
            open_ledger(tmp_path / name, keys_delta="4e-7")
        again = open_ledger(tmp_path / name)
        assert again.standing().accounts[""].state.rule == "both"
        again.close()
    assert counts == {"tenth": 101, "half": 97, "none": 102}  # of 104 in exact composition
    before = Account.of(budget, Parts(plain=Fraction(1, 10)))
    assert [before.charged(cost).state.rule for cost in (one, Pure("0.1"))] == ["gaussian", "zcdp"]
    assert Account.read(before.charged(one).text) == before.charged(one)


@pytest.mark.parametrize(
    ("budget", "keys"), [(Pure(1), "1e-7"), (Approx(1, "1e-6"), "1e-6"), (Approx(1, "1e-6"), "-1e-7")]
)
def test_wrong_parts_of_delta(tmp_path, budget, keys):
    with pytest.raises(InputError, match="keys_delta"):
        open_ledger(tmp_path / "new", budget=budget, keys_delta=keys)
    assert not (tmp_path / "new").exists() or open_ledger(tmp_path / "new", budget=budget).entries == ()


def test_a_pair_that_is_too_small_is_found(tmp_path):
    mechanism = nz.Gaussian(50)
    part = {
        "mechanism": "Gaussian",
        "parameters": {name: str(value) for name, value in vars(mechanism).items()},
        "measure": "count",
        "grid": "1",
        "sensitivity": {"l0": 1, "l1": "1", "l2_squared": "1", "linf": "1"},
    }
    reach = nz.privacy.sensitivity.Sensitivity(1, 1, 1, 1, neighbours=RELATION)
    body = charge_body(Entry(2, "q", mechanism.guarantee(reach).under(RELATION), (part,))) | {"number": 2}
    assert covers(body, checked(body))
    for name in ("plain", "aside"):
        smaller = body["charge"] | {name: str(Fraction(body["charge"][name]) * Fraction(9, 10))}
        assert not covers(body | {"charge": smaller}, checked(body))
    without = {name: amount for name, amount in body["charge"].items() if name not in ("plain", "aside")}
    assert covers(body | {"charge": without}, checked(body))  # as the first version wrote it
