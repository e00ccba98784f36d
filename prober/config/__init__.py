"""The configuration: `loading` reads and shows it, `models` and `sections` are its values."""
