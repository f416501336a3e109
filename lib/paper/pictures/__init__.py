"""The figures of the notebooks."""
