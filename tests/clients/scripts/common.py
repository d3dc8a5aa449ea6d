"""What the scripts share: whom they ask, the tool that they give, and how they say what was answered."""

import json
import os
import subprocess

place = os.environ
FORM = bool(place.get("FORM"))  # whether each turn is to end with a value of a schema


def run(command: str) -> str:
    """Run a command of the shell and return what it printed."""
    return subprocess.run(command, shell=True, capture_output=True, text=True, check=True).stdout


def report(answers: list[str]) -> None:
    print(json.dumps(answers))
