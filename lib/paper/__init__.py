"""The studies of the iCARMA paper: its designs, networks, tables, claims and data."""
