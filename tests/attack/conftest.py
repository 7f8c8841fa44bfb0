import pytest
from tests.attack.tables import Shelf


@pytest.fixture
def shelf(tmp_path):
    """Where worlds are stored."""
    (tmp_path / "worlds").mkdir()
    return Shelf(tmp_path / "worlds")
