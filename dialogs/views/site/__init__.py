"""Pages about the whole site: its agents, models, tools, people, limits and operation."""
