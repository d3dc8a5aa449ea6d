"""Programs that speak the protocols of ``/v1``, each as its user sets it up, in a home of its own:
no proxies, no real keys."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.harness.stack import ROOT

PACKAGES = ROOT / "var/clients"  # laid there by .ci/clients
NODE, PYTHON, AIDER = PACKAGES / "node_modules/.bin", PACKAGES / "python/bin", PACKAGES / "aider/bin"
AGENTS, OPEN_WEBUI, DEEP = PACKAGES / "agents/bin", PACKAGES / "open_webui/bin", PACKAGES / "deep/bin"
VALUES = PACKAGES / "values/bin"
OPENCODE = PACKAGES / "node_modules/opencode-linux-x64/bin/opencode"  # what its package's own script would put in place
SCRIPTS = Path(__file__).with_name("scripts")
QUIET = {"LANGSMITH_TRACING": "false", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "PYTHONDONTWRITEBYTECODE": "1"}
SECONDS = int(os.environ.get("DOMINDS_CLIENT_SECONDS", "120"))  # for each start of a program; a busy machine needs more
TURNS = 10
ONE_BY_ONE = "Do one task after another, each by one call of the tool that runs commands."
WINDOW = 200_000
# The first turn waits for a server that is required.
MCP_OF_CODEX = '\n[mcp_servers.dominds]\nurl = "{}"\nbearer_token_env_var = "DOMINDS_KEY"\nrequired = true\n'


@dataclass(frozen=True)
class Place:
    """Where a program runs, and whom it asks: ``url`` without a path.
    ``mcp`` is the address of a tool server of ours."""

    folder: Path
    url: str
    key: str
    model: str
    mcp: str = ""

    def run(self, command: Sequence[str | Path], environment: Mapping[str, str], expected: Sequence[int] = (0,)) -> str:
        """What it prints. Fails with its errors where it ends with another code than ``expected``."""
        home, work = self.folder / "home", self.folder / "work"
        for made in (home, work):
            made.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [str(part) for part in command],
            cwd=work,
            env={"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,  # with its output in the message
        )
        assert done.returncode in expected, f"{command}:\n{done.stdout}\n{done.stderr}"
        return done.stdout.strip()

    @contextmanager
    def opened(self, command: Sequence[str | Path], environment: Mapping[str, str]) -> Iterator["Conversation"]:
        """A program that stays, and speaks JSON by lines. Its errors are in ``errors.txt``."""
        home, work = self.folder / "home", self.folder / "work"
        for made in (home, work):
            made.mkdir(parents=True, exist_ok=True)
        with (
            (self.folder / "errors.txt").open("w") as errors,
            subprocess.Popen(
                [str(part) for part in command],
                cwd=work,
                env={"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", **environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            ) as process,
        ):
            try:
                yield Conversation(process)
            finally:
                process.terminate()

    @property
    def made(self) -> str:
        """What the program's tools have written."""
        file = self.folder / "work/made.txt"
        return file.read_text() if file.exists() else ""


@dataclass(frozen=True)
class Conversation:
    process: subprocess.Popen[str]

    def send(self, message: Any) -> None:
        assert self.process.stdin is not None
        print(json.dumps(message), file=self.process.stdin, flush=True)

    def read_until(self, is_last: Callable[[Any], bool]) -> list[Any]:
        """What the program says up to this message, which is the last of the list. It ends where the program ends."""
        assert self.process.stdout is not None
        messages = []
        for line in self.process.stdout:
            messages.append(json.loads(line))
            if is_last(messages[-1]):
                return messages
        raise AssertionError(f"the program ended: {messages[-3:]}")


Turns = Callable[[Place, Sequence[str]], list[str]]
"""Says each text in turn, in one conversation, and returns the answers."""


def codex(place: Place, texts: Sequence[str], settings: str = "") -> list[str]:
    environment = _of_codex(place, settings)
    options = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    answers = []
    for number, text in enumerate(texts):
        resume = ["resume", "--last"] if number else []
        command: list[str | Path] = [NODE / "codex", "exec", *resume, *options, text]
        answers.append(place.run(command, environment))
    return answers


def _of_codex(place: Place, settings: str, name: str = "Dominds") -> dict[str, str]:
    folder = place.folder / "codex"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(
        f'{settings}model = "{place.model}"\nmodel_provider = "dominds"\ncheck_for_update_on_startup = false\n\n'
        "[analytics]\nenabled = false\n\n[features]\nplugins = false\napps = false\n\n"
        f'[model_providers.dominds]\nname = "{name}"\nbase_url = "{place.url}/v1"\n'
        'wire_api = "responses"\nenv_key = "DOMINDS_KEY"\n' + (MCP_OF_CODEX.format(place.mcp) if place.mcp else "")
    )
    return {"CODEX_HOME": str(folder), "DOMINDS_KEY": place.key}


def codex_compacted(place: Place, texts: Sequence[str], threshold: int) -> Iterator[str]:
    """One process. Only a provider of this name is asked to compact. Codex keeps up to 64,000 tokens of the user's
    messages, and where these fill the window that it is told, it empties results before it asks: so it is told a
    larger one."""
    brief = place.folder / "brief.md"
    settings = f"model_context_window = 128_000\nmodel_auto_compact_token_limit = {threshold}\n"
    environment = _of_codex(place, f'{settings}model_instructions_file = "{brief}"\n', "OpenAI")
    brief.write_text(ONE_BY_ONE)
    with place.opened([NODE / "codex", "app-server"], environment) as opened:

        def ask(method: str, **parameters: Any) -> Any:
            opened.send({"id": method, "method": method, "params": parameters})
            return opened.read_until(lambda message: message.get("id") == method)[-1]["result"]

        ask("initialize", clientInfo={"name": "loop", "title": "Loop", "version": "1"})
        opened.send({"method": "initialized"})
        bounds = {"approvalPolicy": "never", "sandbox": "danger-full-access"}
        thread = ask("thread/start", cwd=str(place.folder / "work"), **bounds)["thread"]["id"]
        for text in texts:
            opened.send(
                {
                    "id": text,
                    "method": "turn/start",
                    "params": {"threadId": thread, "input": [{"type": "text", "text": text}]},
                }
            )
            messages = opened.read_until(lambda message: message.get("method") == "turn/completed")
            items = [one["params"]["item"] for one in messages if one.get("method") == "item/completed"]
            yield next((item["text"] for item in reversed(items) if item["type"] == "agentMessage"), str(messages[-1]))


def claude_code(place: Place, texts: Sequence[str]) -> list[str]:
    options = ["--allowedTools", "Bash,Read,ToolSearch,CronList,Agent,mcp__dominds"]
    if place.mcp:
        ours = {"type": "http", "url": place.mcp, "headers": {"Authorization": f"Bearer {place.key}"}}
        options += ["--mcp-config", json.dumps({"mcpServers": {"dominds": ours}})]
    answers = []
    for number, text in enumerate(texts):
        goes_on = ["--continue"] if number else []
        answers.append(place.run([NODE / "claude", *goes_on, "-p", text, *options], _of_claude_code(place)))
    return answers


def _of_claude_code(place: Place) -> dict[str, str]:
    return {
        "CLAUDE_CONFIG_DIR": str(place.folder / "claude"),
        "ANTHROPIC_BASE_URL": place.url,
        "ANTHROPIC_AUTH_TOKEN": place.key,
        "ANTHROPIC_MODEL": place.model,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


def claude_code_compacted(place: Place, texts: Sequence[str], threshold: int) -> Iterator[str]:
    """One process, whose user adds the edit that has the server compact to all of its requests."""
    edit = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": threshold}}
    environment = {
        "CLAUDE_CODE_EXTRA_BODY": json.dumps({"context_management": {"edits": [edit]}}),
        "ANTHROPIC_BETAS": "compact-2026-01-12",
    }
    streams = ["-p", "--verbose", "--input-format", "stream-json", "--output-format", "stream-json"]
    options = [*streams, "--tools", "Bash", "--allowedTools", "Bash", "--system-prompt", ONE_BY_ONE]
    with place.opened([NODE / "claude", *options], {**_of_claude_code(place), **environment}) as opened:
        for text in texts:
            opened.send({"type": "user", "message": {"role": "user", "content": text}})
            yield opened.read_until(lambda message: message["type"] == "result")[-1]["result"]


def opencode(place: Place, texts: Sequence[str]) -> list[str]:
    models = {place.model: {"limit": {"context": WINDOW, "output": 8_000}}}
    options = {"baseURL": f"{place.url}/v1", "apiKey": place.key}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": models}
    config = {"provider": {"dominds": provider}, "permission": "allow", "share": "disabled"}
    environment = {
        "OPENCODE_CONFIG_CONTENT": json.dumps(config),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
    }
    answers = []
    for number, text in enumerate(texts):
        goes_on = ["--continue"] if number else []
        printed = place.run(
            [OPENCODE, "run", *goes_on, "-m", f"dominds/{place.model}", "--format", "json", text], environment
        )
        parts = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
        answers.append([one["part"]["text"] for one in parts if one["type"] == "text"][-1])
    return answers


def qwen_code(place: Place, texts: Sequence[str]) -> list[str]:
    environment = {"OPENAI_API_KEY": place.key, "OPENAI_BASE_URL": f"{place.url}/v1", "OPENAI_MODEL": place.model}
    options = ["--yolo", "--auth-type", "openai", "--output-format", "text"]
    answers = []
    for number, text in enumerate(texts):
        goes_on = ["--continue"] if number else []
        answers.append(place.run([NODE / "qwen", *goes_on, *options, "-p", text], environment))
    return answers


def gemini_cli(place: Place, texts: Sequence[str]) -> list[str]:
    settings = place.folder / "home/.gemini/settings.json"
    settings.parent.mkdir(parents=True)
    auth = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    settings.write_text(json.dumps({**auth, "privacy": {"usageStatisticsEnabled": False}}))
    environment = {"GEMINI_API_KEY": place.key, "GOOGLE_GEMINI_BASE_URL": place.url, "GEMINI_TELEMETRY_ENABLED": "0"}
    answers = []
    for number, text in enumerate(texts):
        goes_on = ["--resume", "latest"] if number else []
        options = [*goes_on, "--yolo", "--skip-trust", "-m", place.model]
        answers.append(place.run([NODE / "gemini", *options, "-p", text], environment))
    return answers


def pi(place: Place, texts: Sequence[str]) -> list[str]:
    folder = place.folder / "pi"
    folder.mkdir(parents=True)
    about = {"baseUrl": f"{place.url}/v1", "api": "openai-completions", "apiKey": place.key}
    models = [{"id": place.model, "contextWindow": WINDOW, "maxTokens": 8_000}]
    (folder / "models.json").write_text(json.dumps({"providers": {"dominds": {**about, "models": models}}}))
    options = ["--provider", "dominds", "--model", place.model, "-p"]
    answers = []
    for number, text in enumerate(texts):
        goes_on = ["-c"] if number else []
        environment = {"PI_CODING_AGENT_DIR": str(folder), "PI_OFFLINE": "1"}
        answers.append(place.run([NODE / "pi", *goes_on, *options, text], environment))
    return answers


def continue_cli(place: Place, texts: Sequence[str]) -> list[str]:
    place.folder.mkdir(parents=True, exist_ok=True)
    config = place.folder / "config.yaml"
    about = {"name": place.model, "model": place.model, "apiBase": f"{place.url}/v1", "apiKey": place.key}
    model = {**about, "provider": "openai", "roles": ["chat"], "capabilities": ["tool_use"]}
    config.write_text(json.dumps({"name": "test", "version": "1.0.0", "schema": "v1", "models": [model]}))
    environment = {"CONTINUE_GLOBAL_DIR": str(place.folder / "continue"), "CONTINUE_TELEMETRY_ENABLED": "0"}
    answers = []
    for number, text in enumerate(texts):
        goes_on = ["--resume"] if number else []
        answers.append(place.run([NODE / "cn", *goes_on, "--config", config, "--auto", "-p", text], environment))
    return answers


def copilot(wire: str) -> Turns:
    """GitHub's Copilot CLI, which asks a provider of its user's: by ``completions``, ``responses`` or ``messages``."""

    def turns(place: Place, texts: Sequence[str]) -> list[str]:
        is_anthropic = wire == "messages"
        asked_by = {"TYPE": "anthropic"} if is_anthropic else {"WIRE_API": wire}
        environment = {
            "COPILOT_PROVIDER_BASE_URL": place.url if is_anthropic else f"{place.url}/v1",
            "COPILOT_PROVIDER_API_KEY": place.key,
            **{f"COPILOT_PROVIDER_{name}": value for name, value in asked_by.items()},
            "COPILOT_MODEL": place.model,
            "COPILOT_OFFLINE": "true",
        }
        answers = []
        for number, text in enumerate(texts):
            goes_on = ["--continue"] if number else []
            options = ["--allow-all-tools", "--no-auto-update", "--silent"]
            answers.append(place.run([NODE / "copilot", *goes_on, *options, "-p", text], environment))
        return answers

    return turns


def llm(place: Place, texts: Sequence[str]) -> list[str]:
    return _llm(place, texts, "--functions", SCRIPTS / "common.py")


def llm_with_schema(place: Place, texts: Sequence[str]) -> list[str]:
    return _llm(place, texts, "--schema", "task int, outcome")


def _llm(place: Place, texts: Sequence[str], *options: str | Path) -> list[str]:
    folder = place.folder / "llm"
    folder.mkdir(parents=True)
    (folder / "extra-openai-models.yaml").write_text(
        f'- model_id: {place.model}\n  model_name: {place.model}\n  api_base: "{place.url}/v1"\n'
        "  api_key_name: dominds\n  supports_tools: true\n  supports_schema: true\n"
    )
    answers = []
    for number, text in enumerate(texts):
        goes_on = ["-c"] if number else []
        command = [PYTHON / "llm", "-m", place.model, "--key", place.key, *options, *goes_on, text]
        answers.append(place.run(command, {"LLM_USER_PATH": str(folder)}).splitlines()[-1])
    return answers


def script(name: str, wire: str = "chat", *, form: str = "", python: Path = PYTHON) -> Turns:
    """A library of clients: a script of ours holds the turns with it. With ``form`` each ends
    with a value of a schema."""

    def turns(place: Place, texts: Sequence[str]) -> list[str]:
        file, interpreter = SCRIPTS / name, python / "python"
        if file.suffix == ".mjs":  # looks for its packages beside itself
            file, interpreter = Path(shutil.copy(file, PACKAGES)), Path("node")
        environment = {
            "BASE_URL": place.url,
            "KEY": place.key,
            "MODEL": place.model,
            "WIRE": wire,
            "FORM": form,
            **QUIET,
        }
        answers: list[str] = json.loads(place.run([interpreter, file, *texts], environment).splitlines()[-1])
        return answers

    return turns


def langchain_standard(place: Place) -> set[str]:
    """Names of LangChain's standard tests that pass."""
    (place.folder / "work").mkdir(parents=True)
    shutil.copy(SCRIPTS / "langchain_standard.py", place.folder / "work/test_standard.py")
    options = ["-q", "-rp", "--tb=no", "--asyncio-mode=auto", "-o", "asyncio_default_test_loop_scope=session"]
    command: list[str | Path] = [PYTHON / "python", "-m", "pytest", *options]
    environment = {"BASE_URL": place.url, "KEY": place.key, "MODEL": place.model, **QUIET}
    printed = place.run(command, environment, expected=(0, 1))
    return {line.split("::")[-1] for line in printed.splitlines() if line.startswith("PASSED")}
