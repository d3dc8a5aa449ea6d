"""Rows for tests, and a folder of minds whose models follow a script."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import factory
import yaml
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Permission, User
from factory import declarations

from dialogs.actions.messages import create_dialog, post_message
from dialogs.models import Agent, Dialog
from dialogs.permissions import ALL
from dialogs.runtime.driver import drive
from remediation.models import RemediationRun

PASSWORD = "a long enough password"


class UserFactory(factory.django.DjangoModelFactory[User]):
    class Meta:
        model = User
        skip_postgeneration_save = True

    username = declarations.Sequence(lambda number: f"person-{number}")
    password = declarations.LazyFunction(lambda: make_password(PASSWORD))


class AgentFactory(factory.django.DjangoModelFactory[Agent]):
    class Meta:
        model = Agent

    id = declarations.Sequence(lambda number: f"agent-{number}")
    name = "Tester"
    provider = "test"
    model = "model"
    instructions = "Be brief."
    prepare_rewrites = (
        False  # in a thread of their own, beside what a test looks at; ``tests/flows/test_prepared_rewrites.py``
    )


class RewriteFactory(factory.django.DjangoModelFactory[RemediationRun]):
    class Meta:
        model = RemediationRun

    round_number = 1
    policy = "breaking"
    reason = "test"
    est_before = 9
    est_after = 3
    base_position = 1
    view: list[Any] = []
    removed: list[Any] = []


def write_minds(folder: Path, steps: Sequence[dict[str, Any]], **model: Any) -> None:
    """A provider ``test`` with one scripted ``model`` that takes these steps."""
    folder.mkdir(exist_ok=True)
    (folder / "script.yaml").write_text(yaml.safe_dump({"steps": list(steps)}))
    entry = {"name": "Scripted", "script": "script.yaml", "context_length": 128_000, **model}
    providers = {"test": {"name": "Test", "apiType": "scripted", "models": {"model": entry}}}
    (folder / "llm.yaml").write_text(yaml.safe_dump({"providers": providers}))


def make_dialog(**agent: Any) -> Dialog:
    return create_dialog(UserFactory.create(), AgentFactory.create(**agent).pk)


def send(dialog: Dialog, *texts: str) -> Dialog:
    """Post these messages, each when the one before is answered, and read the dialog anew."""
    for text in texts:
        post_message(dialog.pk, text)
        drive(dialog.pk)
    dialog.refresh_from_db()
    return dialog


def make_operator(**columns: Any) -> User:
    """Staff with every permission that operators have."""
    operator = UserFactory.create(is_staff=True, **columns)
    operator.user_permissions.set(Permission.objects.filter(content_type__app_label="dialogs", codename__in=ALL))
    return operator


LONG = "The importer reads the file data/orders-{n}.csv and writes table orders_{n}. It never touches invoices. " * 12


def talk(dialog: Dialog, messages: int) -> None:
    for number in range(messages):
        send(dialog, LONG.format(n=number))
