"""A search over all values: cheapest known actions, by which others are judged."""
