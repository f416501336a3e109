"""What lies beyond the paper.

Each folder has a README that says whose idea it is. None knows
another, but that `millions` answers with the proposer of `propose`.
"""
