"""Django's engine for SQLite, with additions. Django looks for the module ``base`` in this package."""
