"""The embedded default's signing key: made once, kept in the data folder, never per start."""

import os
import secrets
import tempfile
from pathlib import Path

KEY_BYTES = 48


def kept_key(path: Path) -> str:
    """Return the key in ``path``, making it first where there is none. Readable by its owner alone."""
    if not path.exists():
        _make(path)
    return path.read_text(encoding="ascii").strip()


def _make(path: Path) -> None:
    """Write a new key in one step. Of two processes that start together, the second keeps the first one's."""
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
