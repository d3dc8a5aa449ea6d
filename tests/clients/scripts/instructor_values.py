"""instructor in the mode that WIRE names: each turn asks for a value, and tells it as text in the next one."""

import sys
from collections.abc import Iterable
from typing import Any

import instructor
from anthropic import Anthropic
from common import place, report
from openai import OpenAI
from pydantic import BaseModel


class Outcome(BaseModel):
    """What came of a task."""

    task: int
    outcome: str
    notes: str | None = None


mode = instructor.Mode[place["WIRE"]]
options: dict[str, Any] = {"model": place["MODEL"], "response_model": Outcome, "max_retries": 0}
if place["WIRE"].startswith("ANTHROPIC"):
    client = instructor.from_anthropic(
        Anthropic(base_url=place["BASE_URL"], api_key=place["KEY"], max_retries=0), mode=mode
    )
    options["max_tokens"] = 1000
else:
    client = instructor.from_openai(
        OpenAI(base_url=f"{place['BASE_URL']}/v1", api_key=place["KEY"], max_retries=0), mode=mode
    )
if mode is instructor.Mode.PARALLEL_TOOLS:
    options |= {"response_model": Iterable[Outcome], "tool_choice": "auto"}
history, answers = [], []
for text in sys.argv[1:]:
    history.append({"role": "user", "content": text})
    value = client.chat.completions.create(messages=list(history), **options)
    if mode is instructor.Mode.PARALLEL_TOOLS:
        (value,) = value
    history.append({"role": "assistant", "content": value.model_dump_json()})
    answers.append(value.model_dump_json(exclude_none=True))
report(answers)
