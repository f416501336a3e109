"""Causal graphs, and the worlds that answer what would have happened: SCMs and flows."""
