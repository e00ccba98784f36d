import dashboards  # noqa: F401 - before the SDK, since it has a word with its warnings
