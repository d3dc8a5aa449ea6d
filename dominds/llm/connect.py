"""The provider and the key with which a model of the catalog is called."""

import os
from collections.abc import Mapping
from functools import lru_cache

from dominds.llm.models.model import ModelInfo
from dominds.llm.provider import AuthFailed, Provider, RequestRefused
from dominds.redaction import remember


def connect(model: ModelInfo, *, environ: Mapping[str, str] = os.environ) -> Provider:
    """Return the provider that calls the model. Nothing is sent.

    Raises ``RequestRefused`` if the model is unusable, and ``AuthFailed`` without a key.
    """
    if model.unusable:
        raise RequestRefused(model.unusable)
    return _make_provider(model, key_of(model, environ))


def key_of(model: ModelInfo, environ: Mapping[str, str] = os.environ) -> str:
    """Return the key from the environment, else the one typed into the page. Raises ``AuthFailed``."""
    if not model.api_key_env:
        remember(model.api_key)
        return model.api_key
    key = environ.get(model.api_key_env, "").strip()
    if not key:
        raise AuthFailed(
            f"The provider '{model.provider_id}' needs a key, and the environment variable {model.api_key_env} is "
            f"not set. Set it and start again, type the key under Models, or choose another model."
        )
    if not key.isascii() or not key.isprintable():
        raise AuthFailed(f"The environment variable {model.api_key_env} holds characters that no key has. Correct it.")
    remember(key)  # from now on log lines mask it, whatever its variable is called
    return key


def has_key(model: ModelInfo, environ: Mapping[str, str] = os.environ) -> bool:
    """Check that the key is set if the provider needs one. Only the provider knows whether it is valid."""
    try:
        key_of(model, environ)
    except AuthFailed:
        return False
    return True


@lru_cache(maxsize=1024)
def _make_provider(model: ModelInfo, key: str) -> Provider:
    return model.kind.connect(model, key)
