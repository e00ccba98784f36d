"""Web servers inside the event loop of whoever starts them: of the API, and of the endpoint that Pub/Sub pushes to."""
