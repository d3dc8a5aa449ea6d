"""Pages about the site and not about a dialog: its agents, models, tools, people, limits and how it does."""
