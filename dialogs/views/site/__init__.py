"""Pages about the site as a whole: its agents, models, tools, people, limits and operation."""
