"""Numbers are read as they were written, and what is not a number is refused at once."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.timing import within

from noisette.errors import InputError
from noisette.exact import number

TENTH = Fraction(1, 10)
REFUSED = [True, False, np.True_, np.False_, None, 1j, [], (1,), b"1", object(), math.nan, math.inf, -math.inf]
REFUSED += [np.float64("nan"), Decimal("NaN"), Decimal("sNaN"), Decimal("-Infinity"), "nan", "inf", "", "x", "1/0"]
REFUSED += ["1//2", "1/2/3", "0.5/2", "1e400", "1e-400", "1e999999999", "1e99999999999999999999", "9" * 401]


@pytest.mark.parametrize(
    "written",
    [0.1, "0.1", " 1/10 ", "1e-1", "+.1", TENTH, Decimal("0.1"), np.float64(0.1), "10 / 100"],
)
def test_one_tenth_is_one_tenth(written):
    assert number.fraction(written, "x") == TENTH


def test_a_single_precision_float_is_its_own_shortest_decimal():
    assert number.fraction(np.float32(0.1), "x") == TENTH


@pytest.mark.parametrize("written", [3, "3", 3.0, "3.0", "6/2", np.int64(3), np.uint8(3), np.float32(3), Decimal(3)])
def test_three_is_three(written):
    assert number.fraction(written, "x") == 3


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(5e-324)
@example(1.7976931348623157e308)
def test_a_float_is_its_shortest_decimal(x):
    if x == 0 or abs(x) > 1e-300:
        assert number.fraction(x, "x") == Fraction(repr(x))
        assert float(number.fraction(x, "x")) == x


@given(st.fractions())
def test_a_fraction_survives_being_written_down(x):
    assert number.fraction(str(x), "x") == x


@pytest.mark.parametrize("written", REFUSED, ids=lambda value: repr(value)[:20])
def test_what_is_no_finite_number_is_refused(written):
    with within(60), pytest.raises(InputError, match=r"^budget must be"):
        number.fraction(written, "budget")


@pytest.mark.parametrize("written", ["0e999999999", "0e-999999999"])
def test_zero_is_read_quickly_however_written(written):
    with within(60):
        assert number.fraction(written, "x") == 0


@pytest.mark.parametrize("written", [0, -1, "-1/3", -0.0])
def test_positive_refuses_zero_and_less(written):
    with pytest.raises(InputError, match="scale must be above 0"):
        number.positive(written, "scale")


def test_positive_keeps_its_limit():
    assert number.positive(8, "scale", most=8) == 8
    with pytest.raises(InputError, match="at most 8"):
        number.positive("8.001", "scale", most=8)


@pytest.mark.parametrize("written", [np.int64(3), 3])
def test_whole(written):
    assert number.whole(written, "k") == 3
    assert type(number.whole(written, "k")) is int


@pytest.mark.parametrize("written", [0, -1, 1.0, "1", True, np.True_, None, Fraction(1)])
def test_whole_refuses_the_rest(written):
    with pytest.raises(InputError, match="k must be a whole number, at least 1"):
        number.whole(written, "k")


@given(st.fractions().map(abs).filter(bool))
@example(Fraction(2**100))
@example(Fraction(2**100 - 1))
@example(Fraction(1, 2**100))
@example(Fraction(1, 2**100 + 1))
def test_floor_log2(x):
    k = number.floor_log2(x)
    assert Fraction(2) ** k <= x < Fraction(2) ** (k + 1)


@given(st.fractions())
@example(Fraction(1, 10**330))
def test_nearest_float_brackets(x):
    down, up = number.nearest_float(x, up=False), number.nearest_float(x, up=True)
    assert Fraction(down) <= x <= Fraction(up)
    assert up in (down, math.nextafter(down, math.inf))


def test_nearest_float_beyond_all_floats():
    assert number.nearest_float(Fraction(10**400), up=True) == math.inf
    assert number.nearest_float(Fraction(10**400), up=False) == 1.7976931348623157e308


LONGER = Fraction(3**4000, 7**3000)  # than people may write, and than programs do


@given(st.fractions() | st.integers() | st.just(LONGER))
def test_what_programs_write_is_read_again(x):
    assert number.fraction_of(str(x), "x") == x
    if x == int(x):
        assert number.whole_of(str(int(x)), "x") == x


@given(st.floats(allow_nan=False))
def test_floats_that_programs_write_are_read_again(x):
    assert number.float_of(str(x), "x") == x


@pytest.mark.parametrize("read", [number.fraction_of, number.whole_of, number.float_of])
@pytest.mark.parametrize(
    "written", ["1e1000000000", "1e-1000000000", "9" * 5000, "1/0", "", "x", None, [], {}, True, "1" * 10**6]
)
def test_what_nobody_writes_is_one_sentence(read, written):
    if read is number.float_of and isinstance(written, str) and written.startswith("1e"):
        return  # infinite, or 0
    with pytest.raises(InputError, match=r"^The scale must be "):
        read(written, "The scale")
