"""Prompts as files. Each has a version, and can be overridden by a file of the same name in the operator's folder."""

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from string import Template

SHIPPED = Path(__file__).parent
NAMES = (
    "hand_off_summary",
    "summary_repair",
    "pruning",
    "guidance",
    "guidance_countdown",
    "forced_clear_first",
    "forced_clear_second",
    "forced_clear_third",
    "re_entry_package",
    "milestone",
    "loop_nudge",
    "title",
)
HEAD = re.compile(r"\A---\r?\n(.*?)\r?\n---\r?\n", re.S)
NUMBER = re.compile(r"^version:\s*(\d{1,6})\s*$", re.M)


@dataclass(frozen=True, slots=True)
class Use:
    """A prompt that was sent: its name, its version and the values that filled it."""

    name: str
    version: str
    values: tuple[tuple[str, str], ...] = ()


class Filled(str):
    """A text as it is sent, with the prompts that it was filled from. It can be made again, so it is not stored."""

    uses: tuple[Use, ...] = ()

    @classmethod
    def of(cls, text: str, *uses: Use) -> "Filled":
        filled = cls(text)
        filled.uses = uses
        return filled


class PromptError(ValueError):
    """A file cannot serve as a prompt; the message names it and what is wrong."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt, whose ``text`` has placeholders such as ``$words``. ``number`` is the version that its author wrote."""

    name: str
    number: int
    text: str

    @property
    def version(self) -> str:
        """Return the number and a hash of the text, such as ``2-1f0c9a3b``, which is stored with each use."""
        return f"{self.number}-{sha256(self.text.encode()).hexdigest()[:8]}"

    @property
    def placeholders(self) -> frozenset[str]:
        return frozenset(Template(self.text).get_identifiers())


def load(name: str, folder: Path | None = None) -> Prompt:
    """Return the operator's prompt from ``folder`` if there is a usable one, else that of the product."""
    shipped = _read(SHIPPED / f"{name}.md", 0)
    path = folder / f"{name}.md" if folder is not None else None
    if path is None or not path.is_file():
        return shipped
    try:
        return _own(path, shipped)
    except PromptError:
        return shipped  # ``problems`` reports it to the operator


def problems(folder: Path) -> list[tuple[str, str]]:
    """Return the files of ``folder`` that cannot serve as prompts, each with the reason."""
    results = []
    for path in sorted(folder.glob("*.md")):
        try:
            if path.stem not in NAMES:
                raise PromptError(f"There is no prompt {path.stem}. There are: {', '.join(NAMES)}.")
            _own(path, load(path.stem))
        except PromptError as error:
            results.append((path.name, str(error)))
    return results


def _own(path: Path, shipped: Prompt) -> Prompt:
    """Read an operator's file. Raises ``PromptError``."""
    own = _read(path, path.stat().st_mtime_ns)
    if unknown := own.placeholders - shipped.placeholders:
        known = ", ".join(f"${known}" for known in sorted(shipped.placeholders)) or "none"
        raise PromptError(
            f"{path} uses ${', $'.join(sorted(unknown))}, which this prompt does not know. It knows: {known}. "
            "Write $$ for a dollar sign."
        )
    return own


def render(prompt: Prompt, **values: object) -> Filled:
    """Fill in a prompt. Every placeholder must have a value, and values are not searched for placeholders."""
    given = {name: str(value) for name, value in values.items()}
    try:
        text = Template(prompt.text).substitute(given).strip()
    except KeyError as missing:
        raise PromptError(f"The prompt {prompt.name} needs a value for ${missing.args[0]}.") from missing
    return Filled.of(text, Use(prompt.name, prompt.version, tuple(given.items())))


def join(*texts: Filled) -> Filled:
    return Filled.of("\n".join(texts), *(use for text in texts for use in text.uses))


def uses_of(text: str) -> tuple[Use, ...]:
    """Return the prompts of a text. A text from elsewhere, such as one of a policy outside Dominds, has none."""
    return text.uses if isinstance(text, Filled) else ()


def refill(uses: Iterable[Use], folder: Path | None = None) -> str:
    """Fill in these prompts again. Raises ``PromptError`` if one no longer exists in its version."""
    return join(*(render(_in_version(use, folder), **dict(use.values)) for use in uses))


def _in_version(use: Use, folder: Path | None) -> Prompt:
    prompts = (load(use.name, folder), load(use.name)) if use.name in NAMES else ()
    for prompt in prompts:
        if prompt.version == use.version:
            return prompt
    now = f"; it is {prompts[0].version} now" if prompts else ""
    raise PromptError(f"The prompt {use.name} is gone in version {use.version}{now}.")


# Made-up values for the previews of prompts.
SAMPLES: dict[str, str] = {
    "words": "450",
    "remaining": "3 more generations",
    "attempt": "2",
    "attempts": "3",
    "draft": "Goal and scope\n- ...",
    "reason": "clear_mind with a blank package",
    "size": "61,200 of 64,000 tokens",
    "target": "16,000",
    "tokens": "40,000",
    "nonce": "5f3a9c21",
    "missing": "- never push to main (turn 3)",
    "package": "Goal and scope\n- ...",
    "name": "Schema done",
    "calls": 'read_file({"path": "a.py"})',
    "times": "4",
    "result": "No such file",
    "task": "Fix the pool.",
    "total": "40,000",
    "aim": "16,000",
    "part": "1 of 2",
    "earlier": "none",
}


def preview(name: str, folder: Path | None = None) -> str:
    """Render the prompt as it would be sent, with made-up values."""
    prompt = load(name, folder)
    return render(prompt, **{field: SAMPLES.get(field, f"<{field}>") for field in prompt.placeholders})


@functools.lru_cache(maxsize=64)
def _read(path: Path, changed_at: int) -> Prompt:
    """Read a prompt's file. ``changed_at``, its time in nanoseconds, makes the cache miss once the file is edited."""
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(f"{path} cannot be read: {error}") from error
    head = HEAD.match(content)
    number = NUMBER.search(head[1]) if head else None
    text = content[head.end() :] if head else content
    if not text.strip():
        raise PromptError(f"{path} is empty. Delete it to use the text that comes with the product.")
    template = Template(text)
    if not template.is_valid():
        raise PromptError(f"{path} has a dollar sign that begins no placeholder. Write $$ for a dollar sign.")
    return Prompt(path.stem, int(number[1]) if number else 0, text.strip())
