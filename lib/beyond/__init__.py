"""What lies beyond the paper.

Each folder has a README that says whose idea it is. None imports
another.
"""
