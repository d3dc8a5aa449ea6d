"""Calls to models. Plain Python: no Django, Celery or Channels may be imported from here."""
