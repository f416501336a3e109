"""The fairness study: groups, scenarios, gaps, and how sure they are."""
