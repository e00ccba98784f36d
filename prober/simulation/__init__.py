"""Simulation of the whole prober against the embedded service in one event loop with virtual time.

It uses no sockets, no threads and no real clock.
"""
