"""Tokenizer families by a model's name, and what each chat template adds around a message."""

from enum import StrEnum


class Family(StrEnum):
    LLAMA3 = "llama3"
    LLAMA2 = "llama2"
    MISTRAL = "mistral"
    GPT = "gpt"


# The first part that a model's name contains, in upper or lower case, decides its family.
NAME_PARTS: tuple[tuple[str, Family], ...] = (
    ("llama-3", Family.LLAMA3),
    ("llama3", Family.LLAMA3),
    ("llama-2", Family.LLAMA2),
    ("llama2", Family.LLAMA2),
    ("mistral", Family.MISTRAL),
    ("mixtral", Family.MISTRAL),
    ("ministral", Family.MISTRAL),
    ("devstral", Family.MISTRAL),
    ("magistral", Family.MISTRAL),
    ("pixtral", Family.MISTRAL),
    ("voxtral", Family.MISTRAL),
    ("gpt", Family.GPT),
)

# Tokens that the chat template puts around one message. Llama 3: header start, role, header end, blank line, end of
# turn. Llama 2: the mean of "<s>[INST] ... [/INST]" (8) and "... </s>" (2). Mistral: 4 by the same mean. GPT:
# start, role, separator, end.
MESSAGE_OVERHEAD = {Family.LLAMA3: 5, Family.LLAMA2: 5, Family.MISTRAL: 4, Family.GPT: 4}

# Tokens once per request: the beginning of the text, and the opening of the answer.
REPLY_OVERHEAD = {Family.LLAMA3: 5, Family.LLAMA2: 1, Family.MISTRAL: 1, Family.GPT: 3}


def family_of(model_name: str) -> Family:
    """Return the tokenizer family of a model by its name. Unknown names count as ``gpt``."""
    name = model_name.lower()
    return next((family for part, family in NAME_PARTS if part in name), Family.GPT)


def is_family_named(model_name: str) -> bool:
    """Check whether a model's name tells its family."""
    return any(part in model_name.lower() for part, _ in NAME_PARTS)
