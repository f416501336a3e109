"""The papers' studies: tables, stacks of networks, tuning, groups, audits, claims, plots."""
