"""``/mcp``: the same calls as ``/api``, as tools of a Model Context Protocol server for agents that run elsewhere."""
