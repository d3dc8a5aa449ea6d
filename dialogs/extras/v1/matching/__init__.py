"""Which dialog a client's history continues: by its digests first, then by the habits of single clients."""
