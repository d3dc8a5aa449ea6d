"""Prompts as files: each can be overridden by a file of the same name in a folder of the
operator's, and has a version."""

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from string import Template

SHIPPED = Path(__file__).parent
NAMES = tuple(
    """
    hand_off_summary summary_repair pruning guidance guidance_countdown forced_clear_first forced_clear_second
    forced_clear_third re_entry_package milestone loop_nudge title
    """.split()
)
HEAD = re.compile(r"\A---\r?\n(.*?)\r?\n---\r?\n", re.S)
NUMBER = re.compile(r"^version:\s*(\d{1,6})\s*$", re.M)


@dataclass(frozen=True, slots=True)
class Use:
    """A prompt in the version in which it was sent, and what was filled in."""

    name: str
    version: str
    values: tuple[tuple[str, str], ...] = ()


class Filled(str):
    """A text as it is sent, and the prompts of which it can be made again, so that it is stored nowhere."""

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
    """``text`` has placeholders such as ``$words``. ``number`` counts what people meant to change;
    the hash tells any change."""

    name: str
    number: int
    text: str

    @property
    def version(self) -> str:
        """Such as ``2-1f0c9a3b``: short enough to store with every generation that the prompt asked for."""
        return f"{self.number}-{sha256(self.text.encode()).hexdigest()[:8]}"

    @property
    def placeholders(self) -> frozenset[str]:
        return frozenset(Template(self.text).get_identifiers())


def load(name: str, folder: Path | None = None) -> Prompt:
    """Return the operator's own text from ``folder`` where that can be used, else the product's."""
    shipped = _read(SHIPPED / f"{name}.md", 0)
    path = folder / f"{name}.md" if folder is not None else None
    if path is None or not path.is_file():
        return shipped
    try:
        return _own(path, shipped)
    except PromptError:
        return shipped  # ``problems`` tells the operator


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
    """Fill a prompt in. Every placeholder must have its value; values are not searched for placeholders."""
    given = {name: str(value) for name, value in values.items()}
    try:
        text = Template(prompt.text).substitute(given).strip()
    except KeyError as missing:
        raise PromptError(f"The prompt {prompt.name} needs a value for ${missing.args[0]}.") from missing
    return Filled.of(text, Use(prompt.name, prompt.version, tuple(given.items())))


def join(*texts: Filled) -> Filled:
    return Filled.of("\n".join(texts), *(use for text in texts for use in text.uses))


def uses_of(text: str) -> tuple[Use, ...]:
    """Return the prompts of a text; none where it came from elsewhere, such as a policy outside Dominds."""
    return text.uses if isinstance(text, Filled) else ()


def refill(uses: Iterable[Use], folder: Path | None = None) -> str:
    """Fill these prompts in again. Raises ``PromptError`` where one no longer exists in that version."""
    return join(*(render(_in_version(use, folder), **dict(use.values)) for use in uses))


def _in_version(use: Use, folder: Path | None) -> Prompt:
    prompts = (load(use.name, folder), load(use.name)) if use.name in NAMES else ()
    for prompt in prompts:
        if prompt.version == use.version:
            return prompt
    now = f"; it is {prompts[0].version} now" if prompts else ""
    raise PromptError(f"The prompt {use.name} is gone in version {use.version}{now}.")


# What a preview shows of each prompt, where nothing at hand fills it.
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
    """``changed_at`` is the file's time in nanoseconds, so that an edited file is read again."""
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
