"""The options of a request: those that the model has to honour, and those that nobody here can."""

from collections.abc import Collection, Mapping
from typing import Any

from dialogs.extras.v1.errors import ApiError, invalid
from dominds.llm.catalog.catalog import ModelInfo
from dominds.llm.json_text import dump
from dominds.llm.models.params import faults_of_asked
from dominds.llm.providers.kinds import KINDS

# Fields that are read elsewhere, and those of caches: the dialog is the key of its provider's cache.
OURS = frozenset(
    """
        model messages metadata stream stream_options store include_reasoning tools tool_choice prompt_cache_key
        prompt_cache_options prompt_cache_retention usage
        """.split()
)
# Values that ask for nothing. LM Studio and llama.cpp take -1 for an answer without a bound.
NOT_ASKED = (("max_tokens", -1), ("max_completion_tokens", -1), ("logprobs", False), ("top_logprobs", 0))
WHOLE = ("max_tokens", "max_completion_tokens", "seed", "top_k", "top_logprobs")  # Lua and sliders write 40.0
PEOPLE = ("user", "safety_identifier")  # dialogs are kept apart by them, even if the model's API takes no such field
# Fields of a request, and of what it holds, that nobody here can honour, with the values that ask for nothing.
REFUSED: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "request": {
        "n": (1,),
        "modalities": (["text"],),
        "audio": (),
        "moderation": (),
        "prediction": (),
        "web_search_options": (),
        "functions": ([],),
        "function_call": (),
    },
    "beta": {"fallbacks": ("default",)},
    "billing_policy": {"bill_to": ("self",)},
    "message": {"audio": (), "function_call": ()},
    "call": {"async": (False,), "caller": ({"type": "direct"},)},
    "tool": {"async": (False,), "allowed_callers": (["direct"],)},
    "reasoning": {"mode": ("standard",)},
    "file": {"detail": ("auto",)},
    "image": {"transformations": ()},
    "document": {"citations": ({"enabled": False},), "context": ("",)},
    "search_result": {"citations": ({"enabled": False},)},
}
WHY = {
    "n": "Only one choice is offered: leave n out.",
    "functions": "functions is no longer understood: send tools.",
    "function_call": "function_call is no longer understood: send tool_choice.",
}
FOR_THE_MODEL = frozenset(name for kind in KINDS.values() for name in kind.params.of_chat)


def params_in(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the model has to honour. Raises ``ApiError`` for what nobody can, and for unknown names."""
    params: dict[str, Any] = {}
    for name, value in body.items():
        if value is None or name in OURS or (name, value) in NOT_ASKED:
            continue
        if name in REFUSED["request"]:
            check_offered("request", {name: value})
        elif name in FOR_THE_MODEL:
            is_whole = isinstance(value, float) and value.is_integer() and name in WHOLE
            params[name] = int(value) if is_whole else _storable(value, name)
        else:
            raise invalid(f"There is no field {name!r} that is known here: leave it out.", name)
    both = [params[name] for name in ("max_tokens", "max_completion_tokens") if name in params]
    if both[1:] and both[0] != both[1]:
        raise invalid("max_tokens and max_completion_tokens say the same: send one of them.", "max_tokens")
    return params


def check_offered(part: str, value: Mapping[str, Any], param: str = "") -> None:
    """Raise ``ApiError`` by the name of the first field that is not offered here. ``part`` is a key of ``REFUSED``."""
    for name, harmless in REFUSED[part].items():
        if value.get(name) is not None and value[name] not in harmless:
            reason = WHY.get(name, f"{name} is not offered here: leave it out.")
            raise invalid(reason, f"{param}.{name}" if param else name)


def check_known(value: Mapping[str, Any], known: Collection[str], param: str) -> None:
    """Raise ``ApiError`` by the name of the first field of an object that nobody here understands."""
    for name in [name for name in value if name not in known and value[name] not in (None, [], False)]:
        raise invalid(f"{name} is not offered here: leave it out.", f"{param}.{name}")


def _storable(value: Any, name: str) -> Any:
    if b"\\u0000" in dump(value):
        raise invalid(f"{name} holds a NUL character, which cannot be stored.", name)
    return value


def check_model_honours(model: ModelInfo, settings: Mapping[str, Any], params: Mapping[str, Any]) -> None:
    """Raise ``ApiError`` by the name of the first of a request's ``params`` that the model cannot honour, under the
    settings of its agent.
    """
    faults = faults_of_asked(model, settings, params)
    for name, reason in [fault for fault in faults if fault[0] not in PEOPLE]:
        raise ApiError(400, "unsupported_parameter", f"{name}: {reason}.", param=name)
