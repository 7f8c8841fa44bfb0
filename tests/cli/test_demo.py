"""The tour runs from end to end and says what it shows."""

from typer.testing import CliRunner

from noisette.cli import app


def test_the_tour_runs():
    result = CliRunner().invoke(app, ["demo"])
    assert result.exit_code == 0, result.output
    for part in ("A private count", "0.5-DP", "a million draws", "KNorm", "convicted", "nothing against it"):
        assert part in result.output
