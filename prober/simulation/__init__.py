"""The whole prober against the embedded service in one event loop with a time of its own: no sockets, no threads, no clock."""
