"""The command line: a shell without logic."""

import typer

from noisette.cli.account import account
from noisette.cli.ask import ask, explain, left_out, questions
from noisette.cli.audit import audit
from noisette.cli.buy import buy
from noisette.cli.common import Shell, examples
from noisette.cli.demo import demo
from noisette.cli.ledger import budget, check, ledger
from noisette.cli.open import open_data

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
_BUY = examples(
    "noisette buy bounds age --spend 0.1",
    "noisette buy keys visits.ward --spend 0.1,1e-8",
    "noisette buy rows visits --spend 0.05",
)
_CHECK = examples(
    'noisette ask "SELECT count(*) AS n FROM visits" --spend 0.1 --json > record.json',
    "noisette check record.json",
    "noisette check record.json --without-ledger",
)
_BUDGET = examples("noisette budget", "noisette budget --analyst ana --json")
_LEDGER = examples(
    "noisette ledger", "noisette ledger head > head.txt", 'noisette ledger verify --head "$(cat head.txt)"'
)

app = typer.Typer(
    cls=Shell,
    help="Differential privacy that is exact where others approximate.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("open", epilog=_OPEN)(open_data)
app.command(epilog=_ASK)(ask)
app.command(epilog=_EXPLAIN)(explain)
app.command(epilog=_QUESTIONS)(questions)
app.command("left-out", epilog=_LEFT_OUT)(left_out)
app.add_typer(buy, name="buy", epilog=_BUY)
app.command(epilog=_BUDGET)(budget)
app.command(epilog=_CHECK)(check)
app.add_typer(ledger, name="ledger", epilog=_LEDGER)
app.command()(demo)
app.command()(audit)
app.command()(account)
