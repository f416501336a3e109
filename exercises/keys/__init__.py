"""Typical wrong answers of every checked exercise, a module for each notebook."""
