"""A publisher's record of its own publishes, for `ordering-prober observe --record`: see `recorded`."""

from prober.client.publisher import RecordedPublisher, recorded

__all__ = ["RecordedPublisher", "recorded"]
