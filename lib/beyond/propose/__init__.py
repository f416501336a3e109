"""Propose and verify: networks that learn from the search (notebook 11)."""
