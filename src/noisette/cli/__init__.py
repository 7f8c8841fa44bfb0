"""The command line: a shell without logic."""

import typer

from noisette.cli.account import account
from noisette.cli.approve import approve
from noisette.cli.ask import ask, explain, left_out, questions
from noisette.cli.audit import audit
from noisette.cli.buy import buy
from noisette.cli.collect import collect
from noisette.cli.common import Shell, about, examples
from noisette.cli.demo import demo
from noisette.cli.generalize import generalize
from noisette.cli.ledger import budget, check, ledger
from noisette.cli.map import map_of
from noisette.cli.open import open_data
from noisette.cli.policy import policy
from noisette.cli.stream import stream
from noisette.cli.synth import synth

__all__ = ["app"]

_OPEN = examples(
    "noisette open visits.parquet --unit patient_id --rows 10 --budget 2,1e-6",
    "noisette open visits.parquet wards.parquet --policy policy.toml",
)
_ASK = examples(
    'noisette ask "SELECT ward, count(*) AS n FROM visits GROUP BY ward" --spend 0.1',
    """noisette ask '{"mode": {"column": "ward"}}' --spend 0.1""",
    "noisette ask --file questions.sql --spend 0.5,1e-8 --json",
)
_EXPLAIN = examples(
    'noisette explain "SELECT count(*) AS n FROM visits" --spend 0.1',
    'noisette explain "SELECT avg(age) AS age FROM visits" --error 1 --rows 10000',
)
_QUESTIONS = examples("noisette questions", "noisette questions --json")
_LEFT_OUT = examples(
    "noisette left-out visits --rows 1,2,4,8,16 --spend 0.1",
    "noisette left-out visits --column cost --bounds 0,1000 --bounds 0,5000 --spend 0.1",
)
_MAP = examples(
    "noisette map visits lon lat --spend 1 -o map.png",
    "noisette map visits lon lat --bounds 8.4,47.3,8.7,47.5 --cells 128 --spend 1 -o map.geojson",
)
_BUY = examples(
    "noisette buy bounds age --spend 0.1",
    "noisette buy keys visits.ward --spend 0.1,1e-8",
    "noisette buy rows visits --spend 0.05",
)
_APPROVE = examples("noisette approve", "noisette approve 3f2a9c01d5e7 --why 'the ethics board agreed'")
_CHECK = examples(
    'noisette ask "SELECT count(*) AS n FROM visits" --spend 0.1 --json > record.json',
    "noisette check record.json",
    "noisette check record.json --without-ledger",
)
_BUDGET = examples("noisette budget", "noisette budget --analyst ana --json")
_STREAM = examples(
    "noisette stream day --since 2026-01-01 --until 2027-01-01 --by ward --spend 1,1e-9",
    "noisette stream day --since 2026-01-01 --until 2027-01-01 --by ward --spend 1,1e-9 --all --plot year.png",
)
_LEDGER = examples(
    "noisette ledger", "noisette ledger head > head.txt", 'noisette ledger verify --head "$(cat head.txt)"'
)
_GENERALIZE = examples(
    "noisette generalize queries --n 10000 --tau 0.05",
    "noisette generalize size --queries 500 --tau 0.05",
    "noisette generalize bound --epsilon 0.04 --n 10000 --tau 0.05",
)

_SYNTH = examples(
    "noisette synth visits --spend 1,1e-9 -o synthetic.parquet",
    "noisette synth visits --columns ward,age --spend 1,1e-9 -o synthetic.csv --report quality.html",
)

_POLICY = examples("noisette policy check", "noisette policy check rules.toml --data visits.csv")

_COLLECT = examples(
    "noisette collect new round.json --values 1000 --epsilon 1",
    "noisette collect round.json monday.reports tuesday.reports -o north.partial",
    "noisette collect --merge north.partial south.partial",
)

app = typer.Typer(
    cls=Shell,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.callback()(about)
app.command("open", epilog=_OPEN)(open_data)
app.command(epilog=_ASK)(ask)
app.command(epilog=_EXPLAIN)(explain)
app.command(epilog=_QUESTIONS)(questions)
app.command("left-out", epilog=_LEFT_OUT)(left_out)
app.command("map", epilog=_MAP)(map_of)
app.command(epilog=_SYNTH)(synth)
app.add_typer(buy, name="buy", epilog=_BUY)
app.command(epilog=_STREAM)(stream)
app.command(epilog=_BUDGET)(budget)
app.command(epilog=_CHECK)(check)
app.command(epilog=_APPROVE)(approve)
app.add_typer(ledger, name="ledger", epilog=_LEDGER)
app.add_typer(collect, name="collect", epilog=_COLLECT)
app.add_typer(policy, name="policy", epilog=_POLICY)
app.command()(demo)
app.command()(audit)
app.command()(account)
app.add_typer(generalize, name="generalize", epilog=_GENERALIZE)
