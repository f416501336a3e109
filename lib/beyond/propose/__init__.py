"""The edge of a model: proposals, margins, new noise (notebook 11)."""
