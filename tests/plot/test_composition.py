import sys

import pytest

import noisette as nz
from noisette.errors import InputError
from noisette.plot.composition import _STYLES, composition
from noisette.privacy import theorems


@pytest.fixture(scope="module")
def axes():
    return composition("1/10", "1e-6", up_to=30).axes[0]


def at_the_end(axes) -> dict[str, float]:
    named = {colour: name for name, (colour, _) in _STYLES.items()}
    return {named[line.get_color()]: float(line.get_ydata()[-1]) for line in axes.lines}


def test_lines_are_named_where_they_end(axes):
    assert {text.get_text() for text in axes.texts} == set(_STYLES)
    assert axes.get_title(loc="left") == "ε of k releases together, each 0.1-DP, at δ = 1e-6"
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert axes.get_legend() is None


def test_lines_end_at_the_theorems(axes):
    assert at_the_end(axes) == {
        "basic": 3.0,
        "advanced": theorems.advanced("0.1", 30, "1e-6")[0],
        "zCDP": theorems.concentrated("0.1", 30, "1e-6"),
        "optimal": theorems.optimal("0.1", 0, 30, "1e-6"),
        "Laplace": (nz.Laplace(10).guarantee() * 30).epsilon_at("1e-6"),
        "Gaussian, same sd": pytest.approx((nz.Gaussian("14.142135623730951").guarantee() * 30).epsilon_at("1e-6")),
    }


def test_colours_are_told_apart():
    assert len({colour for colour, _ in _STYLES.values()}) == len(_STYLES)


def test_what_has_no_logarithm_is_left_out():
    drawn = composition("0.01", "0.9", up_to=2).axes[0]
    assert {text.get_text() for text in drawn.texts} == {"basic", "advanced"}


@pytest.mark.parametrize(("name", "start"), [("a.svg", b"<?xml"), ("a.png", b"\x89PNG")])
def test_saved_by_the_ending(tmp_path, name, start):
    composition(1, "1e-6", 3, tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [((0,), "epsilon"), ((1, 0), "delta"), ((1, "1e-6", 1), "up_to"), ((1, "1e-6", 10**7), "at most 1,000,000")],
)
def test_what_cannot_be_drawn(arguments, match):
    with pytest.raises(InputError, match=match):
        composition(*arguments)


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"pip install 'noisette\[plot\]'"):
        composition()
