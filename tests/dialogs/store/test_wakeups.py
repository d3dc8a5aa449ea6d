"""What is published of a dialog's changes, through the real Redis."""

import time
from collections.abc import Callable
from uuid import UUID, uuid4

import orjson
import pytest
from django.db import transaction
from redis import Redis
from redis.client import PubSub

from dialogs.actions.messages import post_message
from dialogs.models import Dialog
from dialogs.store.wakeups import STEP_SECONDS, _publisher, dialog_channel, poke_dialog
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog

pytestmark = pytest.mark.django_db(transaction=True)
Received = Callable[[], list[int]]
PATIENCE_SECONDS = 10
QUIET_SECONDS = 0.3


def subscribed(redis: Redis, dialog_id: UUID) -> PubSub:
    pubsub: PubSub = redis.pubsub(ignore_subscribe_messages=True)
    pubsub.subscribe(dialog_channel(dialog_id))
    pubsub.get_message(timeout=1)
    return pubsub


def listening(redis: Redis, dialog_id: UUID) -> Received:
    pubsub = subscribed(redis, dialog_id)

    def received() -> list[int]:
        seqs: list[int] = []
        while message := pubsub.get_message(timeout=QUIET_SECONDS if seqs else PATIENCE_SECONDS):
            seqs.append(orjson.loads(message["data"])["seq"])
        return seqs

    return received


@pytest.mark.parametrize("seqs", [(3, 4, 6), (10, 9)], ids=["in their order", "as threads come"])
def test_steps_are_announced_with_what_follows_them_by_the_newest(redis_client: Redis, seqs: tuple[int, ...]) -> None:
    dialog_id = uuid4()
    received = listening(redis_client, dialog_id)
    with _publisher._changed:  # all within the time that a step waits, however slow the machine is
        for seq in seqs:
            poke_dialog(dialog_id, seq, is_step=seq != seqs[-1])
    assert received() == [max(seqs)]


def test_a_step_that_nothing_follows_is_told_of_soon(redis_client: Redis) -> None:
    dialog_id = uuid4()
    received = listening(redis_client, dialog_id)
    poke_dialog(dialog_id, 3, is_step=True)
    assert received() == [3]
    poke_dialog(dialog_id, 4, is_step=False)
    assert received() == [4]


def test_a_message_is_told_of_with_what_the_woken_worker_does(redis_client: Redis, script: Script) -> None:
    script({"text": "Hi."})
    dialog = make_dialog()
    pubsub, committed = subscribed(redis_client, dialog.pk), list[float]()
    with transaction.atomic():
        transaction.on_commit(lambda: committed.append(time.monotonic()))
        post_message(dialog.pk, "Hello")
    message = pubsub.get_message(timeout=PATIENCE_SECONDS)
    assert time.monotonic() - committed[0] >= STEP_SECONDS  # for a worker's first steps, of which there are none here
    assert message
    assert orjson.loads(message["data"])["seq"] == Dialog.objects.get(pk=dialog.pk).last_event_seq


def test_each_dialog_is_told_of(redis_client: Redis) -> None:
    dialogs = [uuid4() for _ in range(20)]
    ears = [listening(redis_client, dialog_id) for dialog_id in dialogs]
    for seq, dialog_id in enumerate(dialogs, 1):
        poke_dialog(dialog_id, seq, is_step=bool(seq % 2))
    assert [received() for received in ears] == [[seq] for seq in range(1, 21)]
