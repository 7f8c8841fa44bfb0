import pytest

from noisette import accuracy, plot
from noisette.privacy import sensitivity

CHARTS = {
    "error": lambda path: plot.error(accuracy.compare(sensitivity.counts(3), 1, answers=3), path),
    "composition": lambda path: plot.composition(1, "1e-6", 3, path),
    "tradeoff": lambda path: plot.tradeoff(1, path=path),
    "odds": lambda path: plot.odds(1, path=path),
}


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
@pytest.mark.parametrize("chart", CHARTS)
def test_the_same_chart_is_the_same_file(tmp_path, monkeypatch, chart, ending):
    for day in ("0", "86400"):  # read by matplotlib where it writes a date
        monkeypatch.setenv("SOURCE_DATE_EPOCH", day)
        CHARTS[chart](tmp_path / f"{day}.{ending}")
    assert (tmp_path / f"0.{ending}").read_bytes() == (tmp_path / f"86400.{ending}").read_bytes()
