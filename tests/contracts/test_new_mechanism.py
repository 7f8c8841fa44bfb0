"""A new mechanism is one file: a copy of `geometric.py` under another name works everywhere, and nothing lists it.

The package is copied to a scratch folder, and a process of its own imports it from there.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import noisette

PACKAGE = Path(noisette.__file__).parent

ASK = """
import json
from pathlib import Path

import pyarrow

import noisette as nz
from noisette.accuracy import compare, epsilon_for, error_law, expected_error, largest_error
from noisette.answers import check
from noisette.audit import QUICK, Effort, audited
from noisette.audit.contract import checks_of
from noisette.audit.contract import discovered
from noisette.audit.twins import twins_of
from noisette.mechanisms.additive.two_sided import TwoSided, examples
from noisette.mechanisms.record import from_record, to_record
from noisette.privacy.sensitivity import count
from noisette.report.gallery import pages

assert Path(nz.__file__).is_relative_to(Path.cwd())

assert nz.mechanisms.TwoSided is TwoSided

# contracts and audit
assert examples == [m for name, m in discovered() if name == "TwoSided"]
[audit] = audited("TwoSided", quick=True)
assert audit.verdict == "TwoSided keeps its contract: 16 checks on 4 examples.", audit.verdict

# twins
look = Effort(array=2**21, slow_array=2**17, single=4000, vector=2000)
checks, made = checks_of(examples[0]), []
for name, twin in twins_of(examples[0]).items():
    broken = twin.make(examples[0])
    if not isinstance(broken, str):
        assert any(not checks[c](broken, look).passed for _ in range(4) for c in twin.convicted_by if c in checks), name
        made.append(name)
assert len(made) == len(twins_of(nz.Geometric(1))) - 2, made        # no floating-point sampler, no curve of its own

# accuracy
for m in examples:
    same = nz.Geometric(m.scale)
    assert error_law(m) == error_law(same)
    assert (expected_error(m), largest_error(m, 9)) == (expected_error(same), largest_error(same, 9))
assert epsilon_for(TwoSided, error=10) == epsilon_for(nz.Geometric, error=10)
compared = compare(nz.sensitivity.counts(5), 1, answers=5, grid=1)
assert dict(compared.refused)["TwoSided"] == "The same law as Geometric."
assert "TwoSided" in dict(compare(nz.sensitivity.counts(5), 1, answers=5).refused)

# gallery
assert any(name.startswith("two-sided") for name in pages())

# records
for m in examples:
    assert from_record(to_record(m, "rows", count())) == m
rules = {"unit": "p", "rows": 1}
table = pyarrow.table({"p": [1, 2, 3]})
people = nz.open({"people": table}, policy={"budget": {"epsilon": 9}, "tables": {"people": rules}})
record = json.loads(people.sql("SELECT count(*) AS n FROM people", spend=1).to_json())
assert record["mechanisms"][0]["mechanism"] == "Geometric"
record["mechanisms"][0]["mechanism"] = "TwoSided"
assert check(json.dumps(record)).epsilon == 1
"""


@pytest.mark.slow
def test_a_copy_of_the_geometric_mechanism_works_untouched(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "noisette", ignore=shutil.ignore_patterns("__pycache__"))
    family = tmp_path / "noisette" / "mechanisms" / "additive"
    text = (family / "geometric.py").read_text(encoding="utf-8")
    (family / "two_sided.py").write_text(text.replace("Geometric", "TwoSided"), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-c", ASK],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
