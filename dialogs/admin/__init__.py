"""The operator's admin: all rows, history read-only, and a few actions. One module per subject."""

from dialogs.admin import agents, history, people, questions, users

__all__ = ["agents", "history", "people", "questions", "users"]
