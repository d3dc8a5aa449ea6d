"""Conversations that were held elsewhere, as dialogs: what a file holds, and storing it once."""
