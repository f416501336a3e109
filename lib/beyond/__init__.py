"""What lies beyond the paper; each folder has a README and knows no other."""
