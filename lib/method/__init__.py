"""iCARMA, from the causal graph to the report; `lib/__init__.py` has the reading order."""
