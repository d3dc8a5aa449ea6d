"""Django's engine for SQLite, with what Dominds adds. The folder must be named so: Django looks for ``base`` in it."""
