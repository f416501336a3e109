"""What everything rests on: arithmetic with equal bits, files, checks, progress bars."""
