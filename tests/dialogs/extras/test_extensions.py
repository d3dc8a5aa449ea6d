"""Our own extensions keep the laws of every extension, and the core stands without them."""

import re

import pytest
from django.conf import settings

from dialogs.extension import Piece, installed_extensions, load, pieces_at, spending_adders, state_hearers
from dialogs.extras.conformance import ExtensionConformance
from tests.harness.stack import ROOT


@pytest.mark.parametrize("app", settings.OWN_EXTRAS, ids=lambda app: app.rpartition(".")[2])
class TestOurs(ExtensionConformance):
    @pytest.fixture(autouse=True)
    def _set(self, app: str) -> None:
        type(self).app = app


def test_each_folder_of_extras_is_listed() -> None:
    folders = {path.parent.name for path in (ROOT / "dialogs" / "extras").glob("*/apps.py")}
    assert folders == {app.rpartition(".")[2] for app in settings.OWN_EXTRAS}
    assert all((ROOT / "dialogs" / "extras" / folder / "README.md").is_file() for folder in folders)


def test_the_core_names_no_extension() -> None:
    named = re.compile(r"dialogs\.extras\.\w+")
    files = [path for path in (ROOT / "dialogs").rglob("*.py") if "extras" not in path.parts]
    assert len(files) > 200
    assert not [path.name for path in files if named.search(path.read_text())]


def test_a_place_that_the_pages_do_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no place 'nowhere' on the pages\. The places are: navigation, "):
        Piece("nowhere", "a.html")
    with pytest.raises(ValueError, match="no place 'nowhere'"):
        pieces_at("nowhere")


def test_an_app_without_an_extension_is_named() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"health\.extension"):
        load("health")


def test_all_are_switched_on_where_nothing_is_said() -> None:
    assert [extension.name for extension in installed_extensions()] == [
        app.rpartition(".")[2] for app in settings.OWN_EXTRAS
    ]


def test_only_extensions_that_fill_a_field_are_called() -> None:
    assert [hook.__module__ for hook in spending_adders()] == ["dialogs.extras.teams.money"]
    assert [hook.__module__ for hook in state_hearers()] == ["dialogs.extras.teams.side_dialogs"]
