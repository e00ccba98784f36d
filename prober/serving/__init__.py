"""Web servers in the caller's event loop, for the API and the push endpoint of Pub/Sub."""
