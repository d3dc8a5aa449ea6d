"""A hundred turns against a real server: llama.cpp's llama-server, behind LM Studio's model API. Outside ``make test``.

The server is compiled once from PyPI's llama-cpp-python, and its model is random weights on a real vocabulary, written
here with PyPI's gguf, so that nothing is downloaded but packages::

    pip download --no-deps --no-binary :all: llama-cpp-python && tar xzf llama_cpp_python-*.tar.gz
    cmake -S llama_cpp_python-*/vendor/llama.cpp -B llama -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
        -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF \
        -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF
    nice cmake --build llama --target llama-server     # 26 minutes, niced, on 2 busy cores
    pip install gguf
    LLAMA_SERVER=llama/bin/llama-server pytest -s tests/benchmarks/llama_server.py

A model of random weights calls no tools and says nothing. So a small front passes each request on, for the real template,
tokenizer, window and refusals, and puts a tool call or a sentence in place of what the model said. Everything that is
counted here, prompts and overflows, is the server's own.
"""

import contextlib
import gzip
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import httpx2
import pytest

from remediation.models import RemediationRun
from tests.doubles.chat_rules import ChatRequest
from tests.doubles.counting import Unit
from tests.doubles.local_servers import LMStudioDouble
from tests.doubles.rules import Refusal, RequestRefused
from tests.flows import pruner
from tests.flows.conftest import Minds, _fresh_listings, _redis, dialog_with, minds, overflows, say  # noqa: F401  fixtures by their names
from tests.flows.test_hundred_turns import FILES, Reader, deviations

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(3_600)]

WINDOW = 16_384
TURNS = 100
MODEL = "llama-2-random"
TEMPLATE = """{{ bos_token }}{% for message in messages %}{% if message.role == 'system' %}<<SYS>>
{{ message.content }}{% if tools %}

{{ tools | tojson }}{% endif %}
<</SYS>>

{% elif message.role == 'assistant' %} {{ message.content or '' }}{% for call in message.tool_calls or [] %}\
{{ call.function | tojson }}{% endfor %} {{ eos_token }}{% else %}{{ bos_token }}[INST] {{ message.content }} [/INST]\
{% endif %}{% endfor %}"""


def write_model(path: Path) -> None:
    """One layer of random weights over Llama 2's vocabulary."""
    import gguf
    import numpy

    content = gzip.decompress((resources.files("remediation.tokens") / "data" / "llama2.json.gz").read_bytes())
    vocabulary = sorted(json.loads(content)["model"]["vocab"].items(), key=lambda item: item[1])
    size, width, hidden, heads = len(vocabulary), 64, 128, 2
    kinds = [
        gguf.TokenType.UNKNOWN if number == 0
        else gguf.TokenType.CONTROL if number < 3
        else gguf.TokenType.BYTE if text.startswith("<0x")
        else gguf.TokenType.NORMAL
        for text, number in vocabulary
    ]  # fmt: skip
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(MODEL)
    writer.add_context_length(WINDOW)
    writer.add_embedding_length(width)
    writer.add_block_count(1)
    writer.add_feed_forward_length(hidden)
    writer.add_head_count(heads)
    writer.add_head_count_kv(heads)
    writer.add_rope_dimension_count(width // heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(size)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([text.encode() for text, _ in vocabulary])
    writer.add_token_scores([0.0 if number < 259 else -float(number - 259) for _, number in vocabulary])
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(TEMPLATE)
    rng = numpy.random.default_rng(7)
    shapes = {
        "token_embd.weight": (size, width),
        "output.weight": (size, width),
        "output_norm.weight": (width,),
        "blk.0.attn_norm.weight": (width,),
        "blk.0.ffn_norm.weight": (width,),
        **{f"blk.0.attn_{name}.weight": (width, width) for name in ("q", "k", "v", "output")},
        "blk.0.ffn_gate.weight": (hidden, width),
        "blk.0.ffn_up.weight": (hidden, width),
        "blk.0.ffn_down.weight": (width, hidden),
    }
    for name, shape in shapes.items():
        writer.add_tensor(name, rng.normal(0, 0.05, shape).astype(numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@contextlib.contextmanager
def llama_server(binary: str, folder: Path) -> Iterator[str]:
    """The address of a running llama-server with the random model."""
    write_model(folder / "model.gguf")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        binary, "-m", str(folder / "model.gguf"), "-c", str(WINDOW), "--port", str(port), "--jinja", "-np", "1", "-t", "1",
        "--no-context-shift",
    ]  # fmt: skip
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(300):
            with contextlib.suppress(httpx2.HTTPError):
                if httpx2.get(f"{url}/health").status_code == 200:
                    break
            assert process.poll() is None, (folder / "server.log").read_text()[-2_000:]
            time.sleep(0.2)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=30)


class Front(LMStudioDouble):
    """LM Studio's model API and strictness in front of the real server."""

    def __init__(self, behind: str) -> None:
        super().__init__(Reader(), model=MODEL, window=WINDOW, by_template=True)
        self._behind = httpx2.Client(base_url=behind, timeout=120)

    def count_prompt(self, request: ChatRequest, units: Sequence[Unit]) -> int:
        """As the real server reports it. What it refuses is refused."""
        body = {**request.body, "stream": False, "max_tokens": 1}
        body |= {"tool_choice": "none"} if "tools" in body else {}
        body.pop("stream_options", None)
        answered = self._behind.post("/v1/chat/completions", json=body)
        if answered.status_code != 200:
            raise RequestRefused(Refusal("llama.cpp", answered.status_code, answered.text))
        return int(answered.json()["usage"]["prompt_tokens"])


@pytest.fixture
def front(tmp_path: Path) -> Iterator[Front]:
    binary = os.environ.get("LLAMA_SERVER", "")
    if not binary:
        pytest.fail("Name the compiled server with LLAMA_SERVER; the top of this file says how to make it.")
    with llama_server(binary, tmp_path) as url, Front(url) as server:
        yield server


def test_a_hundred_turns_against_llama_cpp(front: Front, minds: Minds, settings: Any) -> None:  # noqa: F811
    for name, text in FILES.items():
        (Path(settings.WORKSPACE_DIR) / name).write_text(text)
    minds.serve(front, "lmstudio")
    dialog = dialog_with(front, tools=["read_file"])
    started = time.monotonic()
    for number in range(TURNS):
        say(dialog, f"Please look at file number {number} and tell me what is in it.")
    took = time.monotonic() - started
    raw, calibrated = deviations(dialog)
    runs = RemediationRun.objects.filter(dialog=dialog).count()
    pruned = sum(pruner.is_asked(body) for body in front.bodies)
    largest = max(request.prompt.prompt_tokens for request in front.requests if request.prompt)
    print(
        f"\n{TURNS} turns in {took:.0f} s, {len(front.bodies)} requests, {pruned} of them to the pruning agent, {runs} "
        f"compactions, largest prompt {largest:,} of {WINDOW:,} tokens, estimates off by at most {max(raw):.1%} as counted "
        f"and {max(calibrated[1:]):.1%} after calibration"
    )
    refused = [one for one in front.refusals if one.rule != "path"]  # LM Studio's socket is asked for and is not there
    assert (refused, overflows(front)) == ([], 0)
    assert dialog.turns.filter(role="user", status="answered").count() == TURNS
    assert dialog.turns.filter(role="tool", status="ok").count() == TURNS
    assert runs > 5 and max(calibrated[1:]) <= 0.05
