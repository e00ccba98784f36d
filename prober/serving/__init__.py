"""Web servers in the caller's event loop.

They serve the API, and the endpoint that Pub/Sub pushes to.
"""
