"""Where Pub/Sub pushes to: an endpoint over HTTP that lets in whoever has a token of Google's, and answers as an experiment decides."""
