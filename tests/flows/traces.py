"""Where a text can be found: in any column of any table, and in everything that people and programs are shown."""

from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from dialogs.accounts.api_keys import create_key
from dialogs.models import Dialog
from dialogs.queries import export


def tables_holding(text: str) -> list[str]:
    """Every table with a row that holds ``text`` in whatever column, JSON included."""
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        results = []
        for table in tables:
            cursor.execute(f'SELECT count(*) FROM "{table}" AS entry WHERE entry::text LIKE %s', [f"%{text}%"])
            if cursor.fetchone()[0]:
                results.append(table)
    return results


def shown(dialog: Dialog, staff: User) -> dict[str, str]:
    """All that the pages, the API, the export and the admin say of a dialog, by address."""
    page = Client()
    page.force_login(staff)
    program = Client(headers={"Authorization": f"Bearer {create_key(dialog.owner)}"})
    addresses = [f"/d/{dialog.pk}/", f"/d/{dialog.pk}/context/", "/", "/q4h/"]
    addresses += [f"/q4h/{question.pk}/" for question in dialog.questions.all()]
    guided = dialog.generations.filter(guided=True).values_list("pk", flat=True)
    addresses += [f"/d/{dialog.pk}/context/?at={pk}" for pk in guided]
    parts = ("", "/turns?limit=1000", "/generations?limit=1000", "/events?limit=1000", "/reminders", "/context")
    calls = [f"/api/dialogs/{dialog.pk}{part}" for part in parts] + ["/api/questions"]
    calls += [f"/api/dialogs/{dialog.pk}/generations/{pk}/request" for pk in guided]
    answers = {address: page.get(address, follow=True) for address in addresses}
    answers |= {address: program.get(address) for address in calls}
    assert {address: answer.status_code for address, answer in answers.items() if answer.status_code != 200} == {}
    text = {address: answer.content.decode() for address, answer in answers.items()}
    return text | {"export.md": "".join(export.as_markdown(dialog)), "export.json": "".join(export.as_json(dialog))}


def shown_holding(dialog: Dialog, staff: User, text: str) -> list[str]:
    return [address for address, page in shown(dialog, staff).items() if text in page]
