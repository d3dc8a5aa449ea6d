from tests.dialogs.conftest import _redis, script
from tests.dominds.llm.conftest import server

__all__ = ["_redis", "script", "server"]
