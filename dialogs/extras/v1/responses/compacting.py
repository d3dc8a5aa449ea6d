"""``POST /v1/responses/compact``: a conversation as its user's messages and one item, which stands for all of it."""

import time
from functools import partial
from typing import Any

from dialogs.extras.v1.compaction import Outcome
from dialogs.extras.v1.responses.answer import ResponseWriter, usage_json
from dialogs.extras.v1.responses.request import NAMES, prior_of
from dialogs.extras.v1.responses.stored import Place
from dialogs.extras.v1.responses.tools import Tools
from dialogs.extras.v1.runs import Run
from dialogs.extras.v1.wire import Prior, Reading, Sent


def read_compaction(sent: Sent) -> Reading:
    """Read a request of this call, which has no writer of answers. Raises ``ApiError`` or ``Refusal``."""
    prior = prior_of(sent)
    writer = partial(ResponseWriter, sent.body, Tools(), False)
    return Reading(prior.request, writer, NAMES, lambda: prior, is_compaction=True)


def compacted_json(run: Run, prior: Prior, outcome: Outcome) -> dict[str, Any]:
    place = Place.of_run(run)
    asked = [message.text for message in prior.request.messages if message.role == "user"]
    users = [
        {
            "id": place.id("msg", index),
            "type": "message",
            "role": "user",
            "status": "completed",
            "content": [{"type": "input_text", "text": text}],
        }
        for index, text in enumerate(asked)
    ]
    item = {
        "id": place.id("cmp", len(users)),
        "type": "compaction",
        "encrypted_content": outcome.compacted.pack(),
    }
    return {
        "id": place.id("resp"),
        "object": "response.compaction",
        "created_at": int(time.time()),
        "output": [*users, item],
        "usage": usage_json(outcome.usage),
    }
