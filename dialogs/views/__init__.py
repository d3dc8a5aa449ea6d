"""Views: parse a form, call one service, render or redirect. One module per subject."""

from dialogs.views.messages import post_message

__all__ = ["post_message"]
