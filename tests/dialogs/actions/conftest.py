"""A dialog of a scripted agent."""

import pytest

from dialogs.models import Dialog
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog


@pytest.fixture
def dialog(script: Script) -> Dialog:
    return make_dialog()
