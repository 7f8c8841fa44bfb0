"""Did you mean: the nearest name wherever one is typed, and nothing that is not public."""

import importlib

import pyarrow
import pytest

import noisette as nz
from noisette.errors import InputError, NoisetteError
from noisette.names import closest
from noisette.questions.data import from_json
from tests.cli.tools import refused, run

PEOPLE = pyarrow.table({"patient_id": ["canaryqx", "b"], "age": [30, 40], "ward": ["canarywd", "south"]})


@pytest.fixture(scope="module")
def data():
    return nz.open({"visits": PEOPLE}, unit="patient_id", rows=1, budget=5)


def test_case_does_not_matter_and_long_lists_end():
    assert closest("AGE_", ["ward", "Age"]) == "did you mean Age?"
    assert closest("x", map(str, range(40))).endswith("28, 29, 10 more.")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT avg(agee) FROM visits", "There is no column agee here: did you mean age?"),
        ("SELECT avg(v.wadr) FROM visits AS v", "did you mean ward?"),
        ("SELECT count(*) FROM vists", "There is no table vists: did you mean visits?"),
        ("SELECT medain(age) FROM visits", "MEDAIN is not among the functions of a query: did you mean MEDIAN?"),
        ("SELECT conut(*) FROM visits", "did you mean COUNT?"),
        ("SELECT sum(age) FROM visits WHERE xyzzy = 1", "use one of patient_id, age, ward."),
        ("SELECT count(*) FROM visits WHERE ward = 'canarywx'", None),
        ("SELECT count(*) FROM visits WHERE canarywx = 1", "use one of patient_id, age, ward."),
    ],
)
def test_sql(data, text, said):
    if said is None:
        assert data.explain(text, spend=1)
        return
    with pytest.raises(InputError) as refusal:
        data.explain(text, spend=1)
    assert said in str(refusal.value)
    assert "canarywd" not in str(refusal.value)


def test_tables_answers_questions_and_purchases(data):
    asks = [
        (lambda: data.table("vists"), "did you mean visits?"),
        (lambda: data.table("visits").mean("agee"), "did you mean age?"),
        (lambda: data.sql("SELECT count(*) AS total FROM visits", spend=1)["totl"], "did you mean total?"),
        (lambda: data.explain(nz.Mode("wrad"), spend=1), "did you mean ward?"),
        (lambda: from_json('{"mod": {"column": "ward"}}'), "did you mean mode?"),
        (lambda: data.bounds("vists.age", spend=1), "did you mean visits?"),
        (lambda: nz.open(PEOPLE, budget=1, policy={"tables": {"data": {"rwos": 1}}}), "did you mean rows?"),
        (lambda: nz.open(PEOPLE, budget=1, policy={"bugdet": {}}), "did you mean budget?"),
    ]
    for ask, said in asks:
        with pytest.raises(NoisetteError) as refusal:
            ask()
        assert said in str(refusal.value)


def test_names_of_analysts_are_not_suggested(tmp_path):
    curator = nz.open({"visits": PEOPLE}, budget=5, ledger=tmp_path / "ledger.sqlite")
    curator.ledger.share({"anastasia": nz.Pure(1)}, why="a pilot")
    with pytest.raises(NoisetteError) as refusal:
        curator.sql("SELECT count(*) FROM visits", spend=1, analyst="anastasi")
    assert "anastasia" not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Laplce", "noisette has no 'Laplce': did you mean Laplace?"),
        ("NoisMax", "did you mean NoisyMax?"),
        ("GRR", "it is noisette.local.GRR."),
        ("Zyx", "see its documentation."),
    ],
)
def test_the_top_level(name, said):
    with pytest.raises(AttributeError) as refusal:
        getattr(nz, name)
    assert said in str(refusal.value)
    assert not hasattr(nz, f"_{name}")


@pytest.mark.parametrize(
    ("package", "name", "meant"),
    [
        ("privacy", "posson", "poisson"),
        ("local", "Olh", "OLH"),
        ("mechanisms", "Laplce", "Laplace"),
        ("questions", "Moed", "Mode"),
    ],
)
def test_packages_say_which_name_was_meant(package, name, meant):
    with pytest.raises(AttributeError) as refusal:
        getattr(getattr(nz, package), name)
    assert str(refusal.value) == f"noisette.{package} has no {name!r}: did you mean {meant}?"
    assert not hasattr(getattr(nz, package), "_hidden")
    with pytest.raises(ImportError):
        importlib.import_module(f"noisette.{package}.no_{name}")


def test_every_mechanism_is_found_at_the_top_level():
    from noisette.mechanisms.catalogue import mechanisms

    shadowed = {name for name, kind in mechanisms().items() if getattr(nz, name) is not kind}
    assert shadowed <= set(nz.questions.__all__)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["opn"], "There is no command opn: did you mean open?"),
        (["ledger", "shw"], "There is no command shw: did you mean show?"),
        (["ask", "--spnd", "1"], "There is no option --spnd: did you mean --spend?"),
        (["zzz"], "There is no command zzz: there may be open, ask,"),
        (["audit", "geometrc"], "did you mean Geometric?"),
        (["account", "laplce(1)*100"], "laplce is no release: did you mean laplace?"),
        (["account", "gaussian(sgma=1)"], "gaussian is written gaussian(sigma, distance)."),
        (["account", "zzz(1)"], "zzz is no release: there may be pure, approx,"),
    ],
    ids=lambda found: " ".join(found) if isinstance(found, list) else None,
)
def test_the_command_line(arguments, said):
    assert refused(2, *arguments).startswith(said) or said in refused(2, *arguments)


def test_the_version():
    assert run("--version").stdout == f"noisette {nz.__version__}\n"
