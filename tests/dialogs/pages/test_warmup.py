"""After the warm-up, the first page finds its pieces."""

import pytest
from django.template import Engine
from django.template.loaders.cached import Loader as CachedLoader

from dialogs.pages import warmup
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog

pytestmark = pytest.mark.django_db


def test_pages_are_loaded(script: Script) -> None:
    script({"text": "Hello."})
    make_dialog()
    (loader,) = Engine.get_default().template_loaders
    assert isinstance(loader, CachedLoader)
    cached = loader.get_template_cache
    cached.clear()
    warmup.warm_up_pages()
    assert {"dialogs/_turn.html", "dialogs/_context_panel.html", "dialogs/_ring.html"} <= set(cached)
