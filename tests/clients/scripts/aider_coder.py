"""aider with its git repository, its map of it and one file to edit: each turn sends all,
the file behind the conversation."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

from common import place, report

for command in (["init", "-q"], ["config", "user.name", "Ann"], ["config", "user.email", "ann@example.org"]):
    subprocess.run(["git", *command], check=True)
Path("made.txt").touch()
Path("helper.py").write_text('def greet(name: str) -> str:\n    return f"Hello, {name}"\n')
subprocess.run(["git", "add", "."], check=True)
subprocess.run(["git", "commit", "-qm", "Begin"], check=True)
os.environ |= {"OPENAI_API_BASE": f"{place['BASE_URL']}/v1", "OPENAI_API_KEY": place["KEY"]}

from aider.main import main  # noqa: E402  reads the environment

MODEL = f"openai/{place['MODEL']}"
QUIET = [
    "--yes-always",
    "--no-gitignore",
    "--no-check-update",
    "--analytics-disable",
    "--no-show-model-warnings",
    "--no-pretty",
]
with contextlib.redirect_stdout(io.StringIO()):
    coder = main(["--model", MODEL, "--weak-model", MODEL, *QUIET, "made.txt"], return_coder=True)
    answers = [coder.run(text) for text in sys.argv[1:]]
    coder.summarize_end()  # else it prints behind the answers
report(answers)
