"""Recommendations for data sets larger than memory (`make recommend`)."""
