"""How a probe reaches a service: the ports in `base`, and one adapter per vantage."""
