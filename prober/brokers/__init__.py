"""Access of probes to a service: the ports in `base`, and one adapter per vantage."""
