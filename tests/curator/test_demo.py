"""The made-up hospital is the same every time and can be asked."""

from noisette.curator.demo import hospital, tables


def test_it_is_the_same_every_time():
    assert tables()["visits"].equals(tables()["visits"])
    visits = tables()["visits"].to_pydict()
    assert len(set(visits["patient_id"])) > 4_800
    assert set(visits["ward"]) == {"east", "north", "south", "west"}


def test_it_can_be_asked():
    answer = hospital().sql("SELECT floor, count(*) AS n FROM visits JOIN wards USING (ward) GROUP BY floor", spend=2)
    assert sorted(answer["floor"].values.to_pylist()) == [1, 2, 3]
