from tests.dialogs.conftest import _redis, script
from tests.llm.conftest import server

__all__ = ["_redis", "script", "server"]
