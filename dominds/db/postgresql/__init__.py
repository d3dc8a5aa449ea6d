"""Django's backend for PostgreSQL, with a cheaper check of pooled connections."""
