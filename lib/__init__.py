"""The code behind the notebooks of the iCARMA companion; see the README for its rooms."""
