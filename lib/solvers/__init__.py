"""Solvers that recommend an action, and what is measured of a recommendation."""
