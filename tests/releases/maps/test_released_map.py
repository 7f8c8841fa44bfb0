"""Released maps: rectangles, polygons, differences, files and points, each against another way to compute it."""

import json
import math
import sys

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from tests.releases.maps.known import KnownFit, known

from noisette.errors import InputError
from noisette.releases.maps.blocks import even_blocks
from noisette.releases.maps.points import _morton
from noisette.releases.maps.regions import polygon_part

shapely = pytest.importorskip("shapely")
X = np.random.default_rng(5).integers(0, 50, (9, 7)).astype(float)


def star(rng, centre, corners=12, size=4.0):
    """A polygon that does not cross itself."""
    turn = np.sort(rng.uniform(0, 2 * np.pi, corners))
    return centre + (rng.uniform(0.3, 1, corners) * size)[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)


# Regions


@pytest.mark.parametrize("whole", [False, True], ids=["anywhere", "corners on the lines"])
@pytest.mark.parametrize("seed", range(12))
def test_the_parts_of_cells_are_those_that_shapely_finds(seed, whole):
    rng = np.random.default_rng(seed)
    corners = star(rng, rng.uniform(-2, 10, 2), size=7)
    corners = np.rint(corners) if whole else corners
    polygon = shapely.Polygon(corners)
    if not polygon.is_valid:
        polygon = max(shapely.get_parts(shapely.make_valid(polygon)), key=lambda part: part.area)
    rings = [np.array(ring.coords) for ring in (polygon.exterior, *polygon.interiors)]
    cells = shapely.box(*np.meshgrid(np.arange(9), np.arange(7), indexing="ij"), *_upper())
    with np.errstate(invalid="ignore"):  # old versions of shapely warn where an intersection is empty
        truth = shapely.area(shapely.intersection(cells, polygon))
    assert np.allclose(polygon_part(rings, (9, 7)), truth, atol=1e-9)
    assert np.allclose(polygon_part([ring[::-1] for ring in rings], (9, 7)), truth, atol=1e-9)


def _upper():
    return np.meshgrid(np.arange(1, 10), np.arange(1, 8), indexing="ij")


def test_a_circle_has_its_area_and_a_hole_is_empty():
    turn = np.linspace(0, 2 * np.pi, 2001)[:-1]
    circle = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    part = polygon_part([[50, 40] + 30 * circle, [50, 40] + 10 * circle], (100, 80))
    assert part.sum() == pytest.approx(math.pi * (900 - 100), rel=1e-5)
    assert part[50, 40] == 0
    assert part[75, 40] == pytest.approx(1)


def test_rectangles_count_parts_of_cells():
    found = known(X, (8, 47, 8.9, 47.7))
    assert found.total.value == X.sum()
    assert found.count((8.1, 47.2, 8.3, 47.4)).value == pytest.approx(X[1:3, 2:4].sum())
    assert found.count((8.1, 47.2, 8.15, 47.3)).value == pytest.approx(X[1, 2] / 2)
    assert found.count((0, 0, 90, 90)) == found.total
    assert found.count((7, 40, 8.1, 47.7)).value == pytest.approx(X[0].sum())


def test_a_rectangle_as_polygon_is_the_same():
    found = known(X)
    box = (1.5, 2.25, 6, 5)
    corners = [(1.5, 2.25), (6, 2.25), (6, 5), (1.5, 5)]
    closed = {"type": "Polygon", "coordinates": [[*corners, corners[0]]]}
    forms = [
        corners,
        np.array(corners),
        closed,
        {"type": "Feature", "properties": {}, "geometry": closed},
        {"type": "FeatureCollection", "features": [{"type": "Feature", "geometry": closed}]},
        {"type": "MultiPolygon", "coordinates": [closed["coordinates"]]},
        shapely.box(*box),
    ]
    for form in forms:
        assert found.count(form).value == pytest.approx(found.count(box).value)


def test_levels_and_several_answers_widen_bars():
    found, box = known(X), (1, 1, 4, 5)
    one = found.count(box)
    assert one.high - one.value == pytest.approx(math.sqrt(12) / 0.025)
    assert found.count(box, level=0.5).high < one.high
    assert found.count(box, among=10).high - one.value == pytest.approx(math.sqrt(12) / 0.0025)
    assert found.count(box, guaranteed=True) == one
    assert found.count(box, guaranteed=False).high - one.value == pytest.approx(math.sqrt(12) / 0.05)
    assert found.counts([box, box]) == [one, one]
    corners = [(1, 1), (4, 1), (4, 5), (1, 5)]
    assert found.count(corners, among=10).high == pytest.approx(found.count(box, among=10).high)
    assert found.count(corners).high == pytest.approx(one.high)
    assert found.count(corners, guaranteed=False).high == pytest.approx(found.count(box, guaranteed=False).high)


def test_the_density_is_that_of_the_cell():
    found = known(X, (0, 0, 0.9, 0.7))
    assert found.density((0.55, 0.35)).value == pytest.approx(X[5, 3] * 100)
    assert found.density((0.9, 0.7)).value == pytest.approx(X[8, 6] * 100)
    assert found.density((0.55, 0.35), among=2).high > found.density((0.55, 0.35)).high


@pytest.mark.parametrize(
    ("region", "says"),
    [
        ((3, 1, 2, 4), "from west to east"),
        ((1, 4, 2, 3), "date line"),
        ((9.5, 1, 12, 3), r"outside of the map, which is \(west, south, east, north\) = \(0, 0, 9, 7\)"),
        ((1, 7, 2, 9), "outside of the map"),
        ((-3, -3, 0, 2), "outside of the map"),
        ((1, 2, 1, 4), "has no area"),
        ([(20, 20), (22, 20), (22, 24)], "This polygon lies outside of the map"),
        ((1, 2, 3), r"\(west, south, east, north\)"),
        ((1, 2, 3, math.nan), r"\(west, south, east, north\)"),
        ("here", r"\(west, south, east, north\)"),
        (5, r"\(west, south, east, north\)"),
        ([(0, 0), (2, 2), (2, 0), (0, 2)], "crosses or touches itself"),
        ([(0, 0), (1, 1), (2, 2)], "crosses or touches itself"),
        ([(0, 0), (1, 1)], "at least three points"),
        ([(0, 0), (1, math.inf), (2, 2)], "at least three points"),
        ({"type": "Point", "coordinates": [1, 2]}, "at least three points"),
        ({"type": "Polygon", "coordinates": []}, "at least three points"),
        ({"type": "FeatureCollection", "features": []}, "at least three points"),
        ({"type": "Polygon", "coordinates": "no"}, "at least three points"),
        (shapely.Point(1, 2), "at least three points"),
        (
            {"type": "MultiPolygon", "coordinates": [[[(0, 0), (3, 0), (0, 3)]], [[(1, 0), (4, 0), (1, 3)]]]},
            "overlap",
        ),
    ],
)
def test_regions_that_make_no_sense_are_refused(region, says):
    with pytest.raises(InputError, match=says) as refusal:
        known(X).count(region)
    assert str(refusal.value).endswith((".", ")."))


def test_points_outside_and_odd_arguments_are_refused():
    found = known(X)
    for point in [(-1, 2), (1, 99), (1, math.nan), (1,), "x"]:
        with pytest.raises(InputError, match="point"):
            found.density(point)
    for options in [{"level": 2.0}, {"level": 0}, {"among": 0}, {"among": 1.5}]:
        with pytest.raises(InputError):
            found.count(**options)
    with pytest.raises(InputError, match="n must be"):
        found.synthetic_points(-1)


def test_without_shapely_and_h3_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "shapely", None)
    monkeypatch.setitem(sys.modules, "h3", None)
    found = known(X, (8, 47, 8.9, 47.7))
    with pytest.raises(InputError, match=r"noisette\[maps\]"):
        found.count([(0, 0), (1, 0), (0, 1)])
    with pytest.raises(InputError, match=r"noisette\[maps\]"):
        found.to_h3(5)
    assert found.count((8, 47, 8.5, 47.5)).value > 0


# Differences


def test_a_difference_has_the_bars_of_both():
    this, last = known(X + 3), known(X)
    found, box = this - last, (0, 0, 2, 2)
    assert found.count(box).value == pytest.approx(12)
    assert found.count(box, guaranteed=False).high - 12 == pytest.approx(2 * 2 / 0.025)
    assert found.count(box).high > found.count(box, guaranteed=False).high
    assert found.counts([box]) == [found.count(box)]
    assert found.total.value == pytest.approx(3 * 63)
    assert found.count([(0, 0), (2, 0), (2, 2), (0, 2)]).value == pytest.approx(12)
    assert found.to_arrow().column("n").to_numpy() == pytest.approx(np.full(63, 3.0))
    assert "difference" in repr(found)
    assert found.chart(note="ε = 1").title.startswith("Difference of two maps\nε = 1")


def test_maps_of_other_cells_are_not_subtracted():
    with pytest.raises(InputError, match="same bounds and cells"):
        known(X) - known(X, (0, 0, 1, 1))
    with pytest.raises(TypeError):
        known(X) - 3


# Tables and files


def test_blocks_join_cells_of_equal_counts():
    x = np.zeros((13, 6))
    x[:8, :4], x[9, 5], x[12, :] = 3.0, 1.0, 2.0
    low, high = even_blocks(x)
    again = np.zeros(x.shape)
    for (a, b), (c, d) in zip(low.astype(int), high.astype(int), strict=True):
        assert not again[a:c, b:d].any()
        again[a:c, b:d] = x[a, b]
    assert np.array_equal(again, x)
    assert len(low) == 2 + 1 + 2
    cube = even_blocks(np.ones((4, 4, 4)))
    assert cube[1].tolist() == [[4, 4, 4]]
    assert len(even_blocks(np.zeros((5, 5)))[0]) == 0


@pytest.mark.slow
def test_every_cell_is_in_the_table():
    table = known(X, (8, 47, 8.9, 47.7)).to_arrow()
    assert table.column_names == ["lon", "lat", "n", "n_low", "n_high"]
    assert table.column("n").to_pylist() == X.ravel().tolist()
    assert table.column("lon")[7].as_py() == 8.1
    assert known(np.ones((2, 3, 4))).to_arrow().num_rows == 24
    assert known(np.ones((300, 200))).columns()[0].values.to_pylist()[-1] == 285


def test_geojson_is_read_back_by_shapely(tmp_path):
    x = X * (X > 25)
    written = known(x, (8, 47, 8.9, 47.7)).to_geojson(tmp_path / "map.geojson")
    again = json.loads((tmp_path / "map.geojson").read_text())
    assert again == written
    shapes = shapely.from_geojson(json.dumps(again))
    assert shapely.is_valid(shapes)
    boxes = [shapely.from_geojson(json.dumps(one["geometry"])) for one in again["features"]]
    assert all(box.exterior.is_ccw for box in boxes)
    assert sum(one["properties"]["n"] for one in again["features"]) == pytest.approx(x.sum())
    assert all(one["properties"]["n"] > 0 for one in again["features"])
    assert shapely.area(shapely.union_all(boxes)) == pytest.approx((x > 0).sum() * 0.01)


def test_geoparquet_says_what_it_holds(tmp_path):
    known(X, (8, 47, 8.9, 47.7)).to_geoparquet(tmp_path / "map.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "map.parquet")
    geo = json.loads(table.schema.metadata[b"geo"])
    column = geo["columns"][geo["primary_column"]]
    assert (geo["version"], column["encoding"], column["geometry_types"]) == ("1.1.0", "WKB", ["Polygon"])
    assert "crs" not in column  # longitude and latitude
    boxes = shapely.from_wkb(table.column("geometry").to_pylist())
    assert shapely.is_valid(boxes).all()
    assert shapely.bounds(boxes)[:, :2].min(axis=0).tolist() == [8.0, 47.0]
    assert shapely.bounds(boxes)[:, 2:].max(axis=0) == pytest.approx(column["bbox"][2:])
    assert sum(table.column("n").to_pylist()) == pytest.approx(X.sum())
    known(X, (8, 47, 900, 147)).to_geoparquet(tmp_path / "other.parquet")
    other = json.loads(pyarrow.parquet.read_schema(tmp_path / "other.parquet").metadata[b"geo"])
    assert other["columns"]["geometry"]["crs"] is None


@pytest.mark.slow
def test_h3_cells_share_all_that_is_on_the_map():
    pytest.importorskip("h3")
    table = known(X, (8, 47, 8.9, 47.7)).to_h3(6)
    assert sum(table.column("n").to_pylist()) == pytest.approx(X.sum(), rel=1e-6)
    assert len(set(table.column("h3").to_pylist())) == table.num_rows > 20
    for resolution in (16, -1, 1.5):
        with pytest.raises(InputError, match="resolution"):
            known(X, (8, 47, 8.9, 47.7)).to_h3(resolution)
    with pytest.raises(InputError, match="5,000 H3 cells"):
        known(X, (8, 47, 8.9, 47.7)).to_h3(12)
    with pytest.raises(InputError, match="lon and lat"):
        known(X, names=("a", "b")).to_h3(3)


@pytest.mark.parametrize("odd", [known(np.ones((2, 2, 2)))], ids=["three axes"])
def test_three_axes_have_no_polygons_and_no_geographic_files(odd, tmp_path):
    for ask in (odd.to_geojson, lambda: odd.to_geoparquet(tmp_path / "x"), lambda: odd.count([(0, 0), (1, 0), (0, 1)])):
        with pytest.raises(InputError, match="two columns"):
            ask()
    assert odd.count((0, 0, 0, 1, 2, 2)).value == 4
    assert odd.chart().values


# Points


@pytest.mark.parametrize("n", [None, 0, 1, 1000, 12_345])
def test_points_follow_the_counts(n):
    x = np.random.default_rng(1).gamma(0.3, 10, (32, 20))
    found = known(x, (8, 47, 8.9, 47.7)).synthetic_points(n)
    many = round(x.sum()) if n is None else n
    assert found.num_rows == many
    lon, lat = (found.column(name).to_numpy() for name in ("lon", "lat"))
    assert not many or (lon.min() >= 8 and lon.max() < 8.9 and lat.min() >= 47 and lat.max() < 47.7)
    again = np.histogram2d(lon, lat, bins=(32, 20), range=((8, 8.9), (47, 47.7)))[0]
    assert np.abs(again - x * many / x.sum()).max() < 1 + 1e-6


def test_whole_counts_come_back_exactly_and_negative_ones_are_none():
    found = known(np.array([[3.0, -2.0], [0.0, 5.0]])).synthetic_points()
    cells = np.floor(np.stack([found.column(name).to_numpy() for name in ("lon", "lat")], axis=1))
    assert sorted(map(tuple, cells.tolist())) == [(0, 0)] * 3 + [(1, 1)] * 5
    assert known(np.zeros((2, 2))).synthetic_points().num_rows == 0
    assert known(np.zeros((2, 2))).synthetic_points(5).num_rows == 0


def test_the_curve_visits_every_cell_once():
    assert sorted(_morton((8, 8)).tolist()) == list(range(64))
    assert len(set(_morton((5, 3, 2)).tolist())) == 30


# Pictures


@pytest.mark.slow
def test_a_picture_has_blocks_and_fades_what_nobody_can_say():
    fit = KnownFit(np.repeat(np.repeat(np.array([[1.0, 4000.0], [0.0, 9.0]]), 150, 0), 150, 1))
    chart = known(fit.x, (8, 47, 8.9, 47.7)).chart(outline=[(8.1, 47.1), (8.2, 47.1), (8.2, 47.3)], note="ε = 1")
    cells = [row for row in chart.values if "f" in row]
    assert 0 < len(cells) <= 128 * 128
    assert {row["f"] < 1 for row in cells} == {True, False}
    assert sum("k" in row for row in chart.values) == 4
    assert "faded where the error bar exceeds the count" in chart.title
    assert known(np.zeros((3, 3))).chart().title.endswith("all counts are 0")


def test_a_map_says_what_it_is():
    assert repr(known(X)).startswith("9 × 7 cells of lon, lat, ")
