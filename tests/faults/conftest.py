from tests.dialogs.conftest import _redis, script

__all__ = ["_redis", "script"]
