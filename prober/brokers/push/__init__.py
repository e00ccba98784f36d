"""The HTTP endpoint that Pub/Sub pushes to.

It accepts requests with a token of Google's, and answers as an experiment decides.
"""
