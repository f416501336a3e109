"""What people think of evaluation functions (notebook 10)."""
