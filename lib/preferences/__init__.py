"""What a person can do and finds hard, and who answers what."""
