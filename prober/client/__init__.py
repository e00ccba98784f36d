"""A publisher's own record of what it publishes, for `ordering-prober observe --record`: see `recorded`."""

from prober.client.publisher import RecordedPublisher, recorded

__all__ = ["RecordedPublisher", "recorded"]
