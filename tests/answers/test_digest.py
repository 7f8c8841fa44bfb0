"""A release and its JSON have one digest, whatever the columns hold."""

import datetime
import json

import numpy as np
import pyarrow
import pytest

from noisette.answers import Column, Release
from noisette.answers.digest import digest_of_record
from noisette.privacy import Pure

COLUMNS = {
    "integers": [1, 2, -3],
    "integers and none": [1, None, 3],
    "integers beyond doubles": [2**53 + 1, 0, 1],
    "integers at the end of doubles": [2**53, -(2**53), 1],
    "numbers": [0.1, -2.5, 1e300],
    "numbers that JSON has not": [float("nan"), float("inf"), -float("inf")],
    "whole numbers as doubles": [3.0, -0.0, 1e22],
    "texts": ["é", "", "a\u2028b"],
    "texts and none": ["x", None, "None"],
    "texts that look like numbers": ["1", "2", "3"],
    "nothing": pyarrow.nulls(3),
    "no text": pyarrow.nulls(3, pyarrow.string()),
    "no number": pyarrow.nulls(3, pyarrow.int64()),
    "truth values": [True, False, None],
    "days": [datetime.date(2026, 1, 1), None, datetime.date(1, 1, 1)],
    "times": [datetime.datetime(2026, 1, 1, 12, 30, 1, 5), None, datetime.datetime(1970, 1, 1)],
    "lists": [[1, 2.0], [], None],
    "single": pyarrow.array([0.1, 2, 3], pyarrow.float32()),
    "unsigned": pyarrow.array([2**64 - 1, 2, 3], pyarrow.uint64()),
}


def release(values, **more):
    array = values if isinstance(values, pyarrow.Array) else pyarrow.array(values)
    ends = np.array([0.5, np.inf, 3])[: len(array)]
    columns = (Column("key", array), Column("n", pyarrow.array(np.arange(len(array))), -ends, ends))
    return Release(columns, 0.95, Pure(1), "p", Pure(1), Pure(1), {"question": "q", **more})


@pytest.mark.parametrize("name", COLUMNS)
def test_a_release_has_the_digest_of_its_record(name):
    made = release(COLUMNS[name], ledger={"entry": 3})
    record = json.loads(made.to_json())
    assert digest_of_record(record) == made.digest
    assert digest_of_record(json.loads(json.dumps(record, indent=1))) == made.digest
    for i, other in enumerate([0, "x", [], 7.25]):
        changed = json.loads(made.to_json())
        changed["rows"][i % 3]["key"] = other
        assert digest_of_record(changed) != made.digest


def test_without_rows():
    made = release([])
    assert digest_of_record(json.loads(made.to_json())) == made.digest
    assert release([], question="other").digest != made.digest


def test_digests_of_all_columns_differ():
    assert len({release(values).digest for values in COLUMNS.values()}) == len(COLUMNS) - 3  # four hold what is null
