"""The papers' studies: designs, tables, stacks, tuning, groups, audits, claims, plots."""
