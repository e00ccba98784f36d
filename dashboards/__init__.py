"""Grafana dashboards made from the metric families and the objectives, so that panels and metrics cannot drift.

`python -m dashboards` writes `*.json` of this folder, which are what users import. The package is needed for that only: it is not part
of the wheel, and the service imports nothing of it.
"""

import warnings

with warnings.catch_warnings():
    # The SDK prefers version 2 of the format as soon as it is imported; Grafana 10 and 11 import version 1 only.
    warnings.filterwarnings("ignore", "Prefer using dashboardv2", DeprecationWarning)
    from grafana_foundation_sdk.builders import dashboard, heatmap  # noqa: F401
