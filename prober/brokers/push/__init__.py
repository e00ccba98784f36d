"""The HTTP endpoint to which Pub/Sub pushes.

It accepts requests with a token signed by Google, and answers as an experiment decides.
"""
