"""The maps of who is nearest."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import noisette as nz
from noisette.errors import InputError
from noisette.mechanisms.spatial.nearest_place import NearestPlace
from noisette.plot.nearest import good, laws, nearest, town

pytest.importorskip("matplotlib")

DOCS = Path(__file__).resolve().parents[2] / "docs"
SMALL = NearestPlace(2, k=2, columns=(3, 9), rows=(-2, 2), place=(4, 0))
PEOPLE = [(3, -2), (4, 1), (5, 1), (8, 2), (9, 2), (9, 2)]


def test_both_laws_are_of_the_same_points():
    ours, other = laws(SMALL, PEOPLE)
    assert ours.shape == other.shape == (5, 7)
    assert ours[2, 1] == SMALL.outcomes(PEOPLE)[4, 0]
    assert ours.sum() == pytest.approx(1)
    assert other.sum() == pytest.approx(1)


def test_minus_the_distance_is_even_but_for_half_of_epsilon():
    """Its best point is the k-th nearest person's, (4, 1) or (5, 1), and its worst no less likely than e^-1/2 of it."""
    other = laws(SMALL, PEOPLE)[1]
    assert SMALL.guarantee(1).epsilon == 1
    best = np.unravel_index(other.argmax(), other.shape)
    assert (best[1] + 3, best[0] - 2) == (5, 1)
    assert 1 < other.max() / other.min() <= np.exp(0.5) + 1e-12


def test_good_points_are_those_whose_rank_is_nearly_k():
    ours, _ = good(SMALL, PEOPLE)
    law = SMALL.outcomes(PEOPLE)
    assert ours == pytest.approx(sum(p for y, p in law.items() if SMALL.error(y, PEOPLE) <= 1), rel=1e-12)


def test_the_town_is_always_the_same_and_on_its_map():
    assert (town() == town()).all()
    assert town().min() >= 0
    assert (town(5000).max(axis=0) <= (119, 79)).all()
    assert (town(300)[:, 0] > 60).sum() == pytest.approx(200, abs=30)


def test_three_maps_with_people_and_both_laws():
    figure = nearest(SMALL, PEOPLE)
    maps = [axes.images[0].get_array() for axes in figure.axes[:3]]
    assert maps[0].sum() == len(PEOPLE)
    assert maps[0][4, 6] == 2
    assert [np.asarray(drawn).tolist() for drawn in maps[1:]] == [law.tolist() for law in laws(SMALL, PEOPLE)]
    titles = [axes.get_title(loc="left") for axes in figure.axes[:3]]
    assert titles[0] == "6 people, and the place"
    assert [re.sub(r"[\d.]+", "#", title) for title in titles[1:]] == [
        "score: ranks, # % good",
        "score: minus distance, # % good",
    ]
    assert figure.axes[3].get_ylabel() == "P(point), ε = 1"


@pytest.mark.parametrize(("name", "start"), [("a.svg", b"<?xml"), ("a.png", b"\x89PNG")])
def test_saved_by_the_ending(tmp_path, name, start):
    nearest(SMALL, PEOPLE, tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)


def test_the_same_map_is_the_same_file(tmp_path):
    for name in ("a.svg", "b.svg"):
        nearest(SMALL, PEOPLE, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_the_pages_picture_is_there_and_small():
    page = (DOCS / "nearest.md").read_text(encoding="utf-8")
    assert "(pictures/nearest.png)" in page
    assert 'path="nearest.png"' in page
    picture = (DOCS / "pictures" / "nearest.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) < 200_000


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert good(SMALL, PEOPLE)[0] > 0.5
    with pytest.raises(InputError, match=r"pip install 'noisette\[plot\]'"):
        nearest(SMALL, PEOPLE)


def test_the_pages_numbers_hold_at_other_places():
    """The story does not hang on one spot."""
    for place in ((0, 0), (70, 42), (119, 40)):
        ranks, distance = good(
            NearestPlace.calibrated(nz.Pure(1), k=30, columns=(0, 119), rows=(0, 79), place=place), town()
        )
        assert ranks > 0.97
        assert distance < 0.4
