from noisette import mechanisms
from noisette.audit.discover import discovered, names
from noisette.mechanisms import Mechanism


def test_every_public_mechanism_is_found():
    public = {name for name in mechanisms.__all__ if isinstance(getattr(mechanisms, name), type)} - {"Mechanism"}
    assert set(names()) == public


def test_examples_are_mechanisms_and_hashable():
    for name, example in discovered():
        assert isinstance(example, Mechanism)
        assert type(example).__name__ == name
        assert hash(example) is not None
