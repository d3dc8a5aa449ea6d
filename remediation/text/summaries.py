"""A check of summaries that a model wrote, and the removal of what does not belong to them. Pure and deterministic."""

import re
from collections.abc import Callable
from itertools import pairwise

from remediation.text.reading import SENTENCE_END

Count = Callable[[str], int]  # tokens of a text

OVERSHOOT = 1.25  # the factor by which a summary may exceed the length asked for. A choice: no model meets it exactly

PROTOCOL = re.compile(
    r"</?tool_call|<function[=_s]|<\|python_tag\||\[TOOL_CALLS\]|\"?\bfunction_call\"?\s*[:(={]"
    r"|\"?\btool_calls\"?\s*[:=]|<(invoke|tool_use|tool_result|tool_response)\b"
    r"|^\s*\{\s*\"(name|tool|function)\"\s*:.*\"(arguments|parameters|input)\"",
    re.I | re.S,
)
# The beginning and the end of a model's thoughts.
REASONING = re.compile(
    r"(?P<begin><(?:think|thinking|thought|reasoning|scratchpad)\b[^<>]*>|\[THINK\]|<\|channel\|>(?!final<))"
    r"|</(?:think|thinking|thought|reasoning|scratchpad)\s*>|\[/THINK\]|<\|channel\|>final<\|message\|>",
    re.I,
)
# A line that begins with a speaker, where a model invents more of the conversation. Real quotes stand in lists or below
# headings.
PLAYED = re.compile(
    r"^[*_]{0,2}(?:(?P<person>user|human|person)|assistant|agent|ai)[*_]{0,2}:[*_ ]{0,3}(?P<words>.*)$", re.I | re.M
)
FINISHED = re.compile(r"[.!?:…。！？)\]}\"'”`|]\W{0,3}$")
UNFINISHED = re.compile(
    r"(?:[,;(\[{–—/=-]|\b(?:the|an?|and|or|of|to|in|on|at|by|for|with|from|that|which|is|are|was|were|be|must|not|never"
    r"|der|die|das|und|oder|mit|von|zu|für|ist|nicht))$",
    re.I,
)
ERROR_START = re.compile(
    r"\W*(traceback \(most recent|(api |http |server |internal |request |provider |[\w.]*)(error|exception)\b\s*(code)?"
    r"\s*[:\-(\d]|\"?error\"?\s*:|http/\d|(http )?[45]\d\d\b\s*(:|-|error|bad|too many|internal|service|unauth"
    r"|not found)|rate limit|too many requests|internal server error|service unavailable|bad gateway|gateway time"
    r"|request timed out|connection (refused|reset|error)|context[_ ]length[_ ]exceeded|the model is overloaded)",
    re.I,
)
REFUSAL_START = re.compile(
    r"\W*((i'?m|i am|we'?re) (very |so |really )?(sorry|afraid|unable|not able)|sorry[,. ]|my apolog|i apologi[sz]e|"
    r"(unfortunately, )?i (can'?t|cannot|can not|won'?t|will not|must decline|decline|do not have|don'?t have)\b|"
    r"as an ai\b|as a (large )?language model)",
    re.I,
)
CALL_SHAPED = re.compile(r"\s*[A-Za-z_]\w*\(\s*(\{.*\}\s*)?\)\s*", re.S)


def without_reasoning(summary: str) -> str:
    """Return a summary without the thoughts that a model wrote before or in it.

    Thoughts that do not end stay, with the mark of their beginning, so that the check finds them.
    """
    kept: list[str] = []
    begin = end = 0  # where the present thoughts begin, and where the last mark ends
    thinks = False
    for mark in REASONING.finditer(summary):
        if mark["begin"] and not thinks:
            kept.append(summary[end : mark.start()])
            begin = mark.start()
        elif not mark["begin"] and not thinks:
            kept.clear()  # thoughts whose beginning stood in the prompt, as some templates write it
        thinks = bool(mark["begin"])
        end = mark.end()
    return "".join((*kept, summary[begin if thinks else end :])).strip()


def without_role_play(summary: str, original: str) -> str:
    """Return a summary without a conversation that the model invented behind it, which would be read as said.

    It begins with a person's words that do not occur in the original, followed by an answer.
    """
    turns = list(PLAYED.finditer(summary))
    known = _bare(original) if turns else ""
    for turn, answer in pairwise(turns):
        if not turn["person"] or answer["person"] or "\n#" in summary[turn.start() : answer.start()]:
            continue
        if _bare(turn["words"]) not in known and summary[: turn.start()].strip():
            return summary[: turn.start()].rstrip()
    return summary


def _bare(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def summary_problem(
    summary: str, original: str, count: Count, max_tokens: int, is_faithful: Callable[[], bool] = lambda: False
) -> str:
    """Return the reason why a model's summary must not be used, or an empty text. It is judged by its form alone.

    A text that begins like an error or a refusal counts as one unless ``is_faithful`` says otherwise: a true summary
    may begin with "Error: the pool was empty" or "I cannot push".
    """
    text = summary.strip()
    if not text:
        return "the summary is empty"
    if REASONING.search(text):
        return "the summary holds the model's reasoning instead of prose"
    if PROTOCOL.search(text) or CALL_SHAPED.fullmatch(text):
        return "the summary is a tool call instead of prose"
    if ERROR_START.match(text) and not is_faithful():
        return "the summary is an error text"
    if REFUSAL_START.match(text) and not is_faithful():
        return "the model refused to summarise"
    if _is_cut_off(text):
        return "the summary is cut off"
    return _size_problem(count(text), count(original.strip()), max_tokens)


def _is_cut_off(text: str) -> bool:
    """Check whether the last line ends within a clause, or without a full stop where others of the text have one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    last = lines[-1]
    if UNFINISHED.search(last) or last.count("`") % 2 or last.count("(") > last.count(")"):
        return True
    if FINISHED.search(last) or len(last) < 2:
        return False
    if len(SENTENCE_END.findall(last)) >= 2:
        return True
    ended = [bool(FINISHED.search(line)) for line in lines[:-1] if not line.startswith("#")]
    return len(ended) >= 2 and sum(ended) >= 0.8 * len(ended)


def _size_problem(tokens: int, original_tokens: int, max_tokens: int) -> str:
    if tokens >= original_tokens:
        return f"the summary is no smaller than its input ({tokens} tokens for {original_tokens})"
    if tokens > max_tokens * OVERSHOOT:
        return f"the summary is longer than asked ({tokens} tokens for at most {max_tokens})"
    return ""
