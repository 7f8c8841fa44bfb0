"""Frozen values that read their fields: what a dataclass promises still holds, and every way in is read."""

import copy
import dataclasses
import inspect
import pickle
import re
from fractions import Fraction
from typing import Annotated, get_type_hints

import pytest

import noisette as nz
from noisette.errors import InputError
from noisette.exact.frozen import KW_ONLY, Positive, Read, Whole, default, frozen, set_fields
from noisette.exact.number import Number
from noisette.mechanisms.catalogue import instances


def _even(value: int, name: str) -> int:
    if value % 2:
        raise InputError(f"{name} must be even.")
    return value


@frozen
class Noise:
    scale: Positive
    _: KW_ONLY
    draws: Whole = 1
    grid: Read[int | None, Fraction] = default(None)

    def __post_init__(self) -> None:
        set_fields(self, grid=self.scale / 8 if self.grid is None else Fraction(self.grid))
        if self.grid > self.scale:
            raise InputError("grid must not be coarser than the noise.")


@frozen
class Even(Noise):
    pairs: Annotated[Whole, _even] = 2

    def __post_init__(self) -> None:
        if self.pairs > self.scale:
            raise InputError("pairs must be at most the scale.")


def test_every_field_is_read():
    made = Noise("1/2", draws=3)
    assert (made.scale, made.draws, made.grid) == (Fraction(1, 2), 3, Fraction(1, 16))
    assert all(type(one) is Fraction for one in (made.scale, made.grid))
    assert made == Noise(0.5, draws=3) == Noise(scale=Fraction(1, 2), draws=3)
    assert hash(made) == hash(Noise(0.5, draws=3))
    assert repr(made) == "Noise(scale=Fraction(1, 2), draws=3, grid=Fraction(1, 16))"


def test_copies_are_equal_and_a_replaced_field_is_read():
    made = Even(4, draws=3)
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == made
    assert dataclasses.replace(made, scale="5/2").scale == Fraction(5, 2)
    with pytest.raises(InputError, match="scale must be above 0"):
        dataclasses.replace(made, scale=0)


def test_values_are_frozen_and_options_have_names():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Noise(1).scale = Fraction(2)
    with pytest.raises(TypeError, match="positional"):
        Noise(1, 2)
    with pytest.raises(TypeError, match="missing"):
        Noise()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Noise(-1), "scale must be above 0"),
        (lambda: Noise(1, draws=0), "draws must be a whole number, at least 1"),
        (lambda: Noise(1, grid=2), "grid must not be coarser"),
        (lambda: Even(0), "scale must be above 0"),
        (lambda: Even(1, grid=2), "grid must not be coarser"),
        (lambda: Even(8, 3), "pairs must be even"),
        (lambda: Even(8, 0), "pairs must be a whole number, at least 1"),
        (lambda: Even(8, 10), "pairs must be at most the scale"),
    ],
)
def test_a_class_refuses_what_its_readers_and_checks_refuse_and_those_of_the_class_it_extends(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()


def test_the_type_of_a_field_is_what_it_holds_and_a_constructor_shows_what_it_takes():
    assert str(inspect.signature(Noise)) == (
        "(scale: int | float | str | fractions.Fraction | decimal.Decimal, *, "
        "draws: int = 1, grid: int | None = None) -> None"
    )
    assert inspect.signature(Even).parameters["scale"].annotation == Number
    assert get_type_hints(Noise) == {"scale": Fraction, "_": KW_ONLY, "draws": int, "grid": Fraction}
    assert [one.name for one in dataclasses.fields(Even)] == ["scale", "draws", "grid", "pairs"]


# Mechanisms: reprs for people, and the right call in place of a wrong one


def test_reprs_that_people_can_read():
    assert repr(nz.Geometric("5/2")) == "Geometric(scale=5/2)"
    assert repr(nz.Laplace(2)) == "Laplace(scale=2, grid=2^-29)"
    assert re.fullmatch(
        r"Gaussian\(σ ≈ 4\.22\d?, grid=2\^-\d+\)", repr(nz.calibrate(nz.Gaussian, nz.Approx(1, "1e-6")))
    )


def test_no_two_examples_look_alike():
    shown = [repr(example) for example in instances()]
    assert len(set(shown)) == len(shown)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: nz.Laplace(epsilon=1, sensitivity=1),
            r"no epsilon: for a guarantee write calibrate\(Laplace, epsilon=1",
        ),
        (lambda: nz.Gaussian(1, delta="1e-6"), r"Gaussian takes sigma, grid and no delta: for a guarantee"),
        (lambda: nz.Laplace(scal=1), r"Laplace takes scale, grid and no scal: did you mean scale\?"),
    ],
    ids=["epsilon", "delta", "typo"],
)
def test_a_wrong_call_says_the_right_one(make, said):
    with pytest.raises(TypeError, match=said):
        make()


def test_a_guarantee_in_words():
    assert nz.calibrate(nz.Laplace, epsilon=1, sensitivity=2) == nz.calibrate(nz.Laplace, nz.Pure(1), sensitivity=2)
    approx = nz.calibrate(nz.Gaussian, epsilon=1, delta="1e-6")
    assert approx == nz.calibrate(nz.Gaussian, nz.Approx(1, "1e-6"))
    assert nz.calibrate(nz.Gaussian, rho="0.1") == nz.calibrate(nz.Gaussian, nz.ZCDP("0.1"))
    for wrong in ({}, {"guarantee": 1, "epsilon": 1}, {"delta": 1}, {"epsilon": 1, "rho": 1}, {"rho": 1, "delta": 1}):
        with pytest.raises(InputError, match="Say the guarantee once"):
            nz.calibrate(nz.Geometric, **wrong)
