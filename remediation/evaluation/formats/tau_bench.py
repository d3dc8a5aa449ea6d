"""tau-bench: runs of an agent with tools, ``traj`` in OpenAI's form."""

from typing import Any

from remediation.evaluation.dialogs import Dialog
from remediation.evaluation.formats.openai_messages import dialog_of, is_messages


def recognises(content: Any) -> bool:
    return (
        isinstance(content, list)
        and bool(content)
        and all(isinstance(run, dict) and is_messages(run.get("traj")) for run in content)
    )


def read(content: Any, name: str) -> tuple[Dialog, ...]:
    return tuple(dialog_of(run["traj"], f"{name}-{number}", "tau-bench") for number, run in enumerate(content, 1))
