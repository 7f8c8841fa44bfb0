"""A new question is one file: a copy of `mode.py` under another name works everywhere, with no other file touched."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import noisette as nz
from noisette.curator.demo import hospital, tables

assert nz.__file__.startswith({tree!r})
question = nz.MostCommon("ward")
assert "MostCommon" in nz.__all__ and nz.questions.from_json('{{"most_common": {{"column": "ward"}}}}') == question
assert nz.questions.from_json(question.to_json()) == question
clinic = hospital(100)
assert clinic.explain(question, spend=1).error > 0
answer = clinic.ask(question, spend=1)
assert answer.rows() == clinic.ask(nz.questions.from_json(question.to_json()), spend=1).rows()
assert nz.answers.check(answer.to_json()) <= nz.Pure(1)
assert len(clinic.budget.entries) == 1
best = nz.Best([question, nz.MostCommon("FLOOR(age / 10)")], by="ward")
assert nz.questions.from_json(best.to_json()) == best

import pyarrow.parquet
from typer.testing import CliRunner
from noisette.cli import app

pyarrow.parquet.write_table(tables()["visits"], "visits.parquet")


def run(*words):
    found = CliRunner().invoke(app, list(words))
    assert found.exit_code == 0, found.output
    return found.stdout


run("open", "visits.parquet", "--unit", "patient_id", "--rows", "8", "--budget", "4,1e-6")
assert '{{"most_common": {{"column": "ward"}}}}' in run("questions")
assert "ward" in run("explain", question.to_json(), "--spend", "1,1e-8")
assert "ward" in run("ask", question.to_json(), "--spend", "1,1e-8")
"""


@pytest.mark.slow
def test_a_copy_of_a_question_works_everywhere(tmp_path):
    tree = tmp_path / "src"
    shutil.copytree(ROOT / "src", tree, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    folder = tree / "noisette" / "questions"
    text = (folder / "mode.py").read_text(encoding="utf-8")
    renamed = text.replace("Mode(", "MostCommon(").replace('"Mode"', '"MostCommon"').replace('"mode"', '"most common"')
    (folder / "most_common.py").write_text(renamed.replace("StableMostCommon", "StableMode"), encoding="utf-8")
    ran = python(tree, tmp_path, "-c", PROGRAM.format(tree=str(tree)))
    assert ran.returncode == 0, ran.stderr
    suite = python(
        tree, tmp_path, "-m", "pytest", "-q", "-n", "0", "tests/contracts/test_questions.py", "-k", "most_common"
    )
    assert suite.returncode == 0, suite.stdout
    assert " passed" in suite.stdout


def python(tree, folder, *arguments):
    environment = {**os.environ, "PYTHONPATH": f"{tree}{os.pathsep}{folder}"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
