from dataclasses import is_dataclass

from noisette import mechanisms
from noisette.audit.contract import discovered, names
from noisette.mechanisms.contract import Mechanism, Outcomes, Output, Probabilities


def test_every_public_mechanism_is_found():
    public = (getattr(mechanisms, name) for name in mechanisms.__all__)
    made = {kind.__name__ for kind in public if isinstance(kind, type) and Mechanism in kind.__mro__[1:]}
    assert set(names()) == made


def test_examples_are_frozen_mechanisms_of_their_kind():
    for name, example in discovered():
        assert type(example).__name__ == name
        assert isinstance(example, Mechanism)
        assert isinstance(example, Outcomes if example.kind is Output.OUTCOME else Probabilities)
        assert is_dataclass(example)
        assert type(example).__dataclass_params__.frozen
        assert hash(example) is not None


def test_a_mechanism_states_what_its_kind_names():
    for _, example in discovered():
        named = example.kind.value.split("`")[1::2]
        for attribute in (part.partition("(")[0] for part in named):
            if attribute not in ("calibrated", "Outcomes"):
                assert hasattr(example, attribute), (example, attribute)
