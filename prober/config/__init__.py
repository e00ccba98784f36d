"""Configuration: `loading` reads and prints it, `models` and `sections` define its values."""
