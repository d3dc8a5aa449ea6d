"""An amount that no comparison takes, in any column, ends no work but what a budget holds, and offers a way on."""

from decimal import Decimal

import orjson
import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.db import connection, models

from dialogs.accounts.api_keys import create_key, key_of
from dialogs.actions import questions
from dialogs.errors import BudgetSpent
from dialogs.models import Agent, ApiKey, CallTotals, Dialog, EmbeddingUse, Generation, PersonSettings, Question
from dialogs.permissions import RESOLVE
from dialogs.state import State
from dialogs.store.charging import check_budget_of
from health.models import HealthSnapshot
from remediation.models import RemediationRun
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import RewriteFactory, make_dialog, send

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.extras]

PRICES = {"prices": {"input": 100, "output": 100}}
BUDGETS = {"dialog_budget_usd", "budget_usd", "monthly_budget_usd"}
OURS = ("dialogs", "remediation", "health")


def amounts() -> set[tuple[type[models.Model], str]]:
    """Return every column that holds money or a fraction."""
    kinds = (models.DecimalField, models.FloatField)
    tables = [table for table in apps.get_models() if table._meta.app_label in OURS and table._meta.managed]
    return {
        (field.model, field.name)
        for table in tables
        for field in table._meta.local_concrete_fields
        if isinstance(field, kinds)
    }


def damage(row: models.Model, column: str, value: str) -> None:
    """Write what no column of Django's takes."""
    with connection.cursor() as cursor:
        key = row._meta.pk.column
        prepared = row._meta.pk.get_db_prep_value(row.pk, connection)
        cursor.execute(f'UPDATE {row._meta.db_table} SET {column} = %s WHERE "{key}" = %s', [value, prepared])


def rich_dialog() -> Dialog:
    """A dialog with a budget of each kind."""
    dialog = make_dialog(dialog_budget_usd=Decimal(9))
    Dialog.objects.filter(pk=dialog.pk).update(budget_usd=Decimal(9))
    PersonSettings.objects.create(user=dialog.owner, monthly_budget_usd=Decimal(9))
    dialog.owner.user_permissions.add(Permission.objects.get(codename=RESOLVE.split(".")[-1]))
    return send(dialog, "one")


@pytest.mark.parametrize("value", ["NaN", "-1"])
def test_a_damaged_amount_never_breaks_its_dialog(script: Script, value: str) -> None:
    script({"text": "Hello.", "usage": {"prompt_tokens": 2_000, "completion_tokens": 100}}, **PRICES)
    dialog = rich_dialog()
    person, key = browser_of(dialog.owner), {"Authorization": f"Bearer {create_key(dialog.owner)}"}
    pages = [f"/d/{dialog.pk}/", "/settings/"]
    calls = [f"/api/dialogs/{dialog.pk}{part}" for part in ("", "/generations", "/remediations")]
    rows: dict[type[models.Model], models.Model] = {
        Dialog: dialog,
        Agent: dialog.agent,
        PersonSettings: PersonSettings.objects.get(user=dialog.owner),
        ApiKey: ApiKey.objects.get(owner=dialog.owner),
        Generation: dialog.generations.earliest("pk"),
        HealthSnapshot: HealthSnapshot.objects.filter(generation__dialog=dialog).earliest("pk"),
        RemediationRun: RewriteFactory.create(dialog=dialog),
    }
    assert {model for model, _ in amounts()} <= rows.keys() | {EmbeddingUse, CallTotals}, "see test_costs for the sums"
    for model, column in sorted(amounts(), key=str):
        if model not in rows or (value == "-1" and isinstance(model._meta.get_field(column), models.FloatField)):
            continue
        row = rows[model]
        row.refresh_from_db()
        former = getattr(row, column)
        damage(row, column, value)
        where = f"{model.__name__}.{column}"
        send(dialog, f"With {where}")
        is_budget = column in BUDGETS and model is not ApiKey and not (model is Agent and dialog.budget_usd)
        assert (dialog.state, dialog.failure) == (State.SUSPENDED if is_budget else State.IDLE, ""), where
        for address in pages:
            assert person.get(address).status_code == 200, (where, address)
        for address in calls:
            orjson.loads(person.get(address, headers=key).content)
        if is_budget:
            question = dialog.questions.get(state=Question.State.OPEN)
            assert "is damaged: give another one" in question.text, question.text
            questions.resolve(question.pk, dialog.owner, "raise_budget", budget_usd="9")
            assert dialog.generations.filter(outcome=Generation.Outcome.KEPT).exists()
            send(dialog, "And on")
            assert (dialog.state, dialog.failure) == (State.IDLE, ""), where
        type(row)._base_manager.filter(pk=row.pk).update(**{column: former})


@pytest.mark.parametrize("value", ["NaN", "-1"])
def test_a_key_of_a_damaged_budget_says_so(value: str) -> None:
    key = key_of(create_key(make_dialog().owner, budget_usd=Decimal(9)))
    assert key is not None
    damage(key, "budget_usd", value)
    key.refresh_from_db()
    with pytest.raises(BudgetSpent, match="is damaged"):
        check_budget_of(key)
