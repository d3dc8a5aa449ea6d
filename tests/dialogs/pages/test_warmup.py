"""After the warm-up, the first page finds its pieces."""

import pytest
from django.template import engines

from dialogs.pages import warmup
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog

pytestmark = pytest.mark.django_db


def test_pages_are_loaded(script: Script) -> None:
    script({"text": "Hello."})
    make_dialog()
    cached = engines["django"].engine.template_loaders[0].get_template_cache
    cached.clear()
    warmup.warm_up_pages()
    assert {"dialogs/_turn.html", "dialogs/_context_panel.html", "dialogs/_ring.html"} <= set(cached)
