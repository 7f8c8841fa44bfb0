from noisette import mechanisms
from noisette.audit.discover import discovered, names
from noisette.audit.subject import is_procedure
from noisette.mechanisms import Mechanism
from noisette.mechanisms.procedure import Procedure


def test_every_public_mechanism_is_found():
    public = {name for name in mechanisms.__all__ if isinstance(getattr(mechanisms, name), type)}
    assert set(names()) == public - {"Mechanism", "Procedure"} - {
        "Grid",
        "Order",
        "Triangles",
        "Trimmed",
        "TrimmedMean",
    }


def test_examples_are_mechanisms_and_hashable():
    for name, example in discovered():
        assert isinstance(example, Procedure if is_procedure(example) else Mechanism)
        assert type(example).__name__ == name
        assert hash(example) is not None
