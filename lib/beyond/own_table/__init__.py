"""A table of one's own, checked before anything is fitted (notebook 12)."""
