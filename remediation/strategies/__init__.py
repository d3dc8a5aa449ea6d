"""Strategies: pure functions that make a view of units smaller."""
