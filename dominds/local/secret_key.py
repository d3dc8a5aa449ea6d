"""The signing key of the embedded default. It is made once and stored in the data folder."""

import os
import secrets
import tempfile
from pathlib import Path

KEY_BYTES = 48


def kept_key(path: Path) -> str:
    """Return the key in the file ``path``, which only its owner can read. If there is none, make it."""
    if not path.exists():
        _make(path)
    return path.read_text(encoding="ascii").strip()


def _make(path: Path) -> None:
    """Write a new key atomically. If two processes start together, the second uses the key of the first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=".secret-")  # created with mode 0600
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(KEY_BYTES))
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        Path(draft).unlink()
