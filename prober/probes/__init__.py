"""The experiments. Each file reads like the description of what it does; `catalogue` lists them."""
