"""The experiments, one module each. `catalogue` lists them."""
