"""The made-up hospital is the same every time and can be asked."""

from noisette.curator.demo import POLICY, hospital, tables


def test_it_is_the_same_every_time():
    assert tables()["visits"].equals(tables()["visits"])
    visits = tables()["visits"].to_pydict()
    assert len(set(visits["patient_id"])) == 5_000
    assert set(visits["ward"]) == set(POLICY["tables"]["visits"]["columns"]["ward"]["keys"])


def test_it_can_be_asked():
    answer = hospital().sql("SELECT region, count(*) AS n FROM visits JOIN wards USING (ward) GROUP BY region", spend=2)
    assert sorted(answer["region"].values.to_pylist()) == ["centre", "north", "south"]
