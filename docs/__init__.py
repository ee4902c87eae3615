"""Programs that make the documentation."""
