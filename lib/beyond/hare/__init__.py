"""HARE, recourse with a human in the loop (notebook 09)."""
