"""How a re-entry package is given back to the model: by a prompt, which an operator may write anew."""

from pathlib import Path

import pytest

from dialogs.actions import rewrite_requests
from dialogs.context.view import view_of
from dialogs.runtime.driver import drive
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog

pytestmark = pytest.mark.django_db(transaction=True)

PACKAGE = "Goal and scope\n- It costs $5, see $package."


def test_a_round_begins_with_its_package_in_the_prompts_words(script: Script, tmp_path: Path) -> None:
    dialog = make_dialog()
    assert view_of(dialog).units == ()
    rewrite_requests.clear(dialog.pk, PACKAGE, dialog.owner)
    drive(dialog.pk)
    dialog.refresh_from_db()
    shipped = view_of(dialog).messages[0].text
    assert shipped == f"[Re-entry package: what you carried over when your mind was cleared]\n{PACKAGE}"
    folder = tmp_path / "minds" / "prompts"
    folder.mkdir()
    (folder / "re_entry_package.md").write_text("Your own notes:\n$package")
    assert view_of(dialog).messages[0].text == f"Your own notes:\n{PACKAGE}"
