"""Who applies, who decides, and the problem and recommendation of every solver."""
