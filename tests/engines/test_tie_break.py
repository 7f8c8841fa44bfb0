"""What breaks ties among the rows of a unit follows from the secret of the data."""

import pytest

from noisette.engines.tie_break import choice_key, join_seed, mix_of


@pytest.mark.parametrize("of", [choice_key, mix_of, join_seed])
def test_which_rows_are_retained_depends_on_every_byte_of_the_secret(of):
    secrets = [bytes(16), *(bytes(i) + b"\1" + bytes(15 - i) for i in range(16))]
    assert len({of(secret) for secret in secrets}) == 17
