"""Grafana dashboards made from the metric families and the objectives, so that panels and metrics cannot drift.

`python -m dashboards` writes the files `*.json` of this folder, which users import. The package only serves this purpose: it is not part of
the wheel, and the service does not import it.
"""

import warnings

with warnings.catch_warnings():
    # The SDK prefers version 2 of the format as soon as it is imported; Grafana 10 and 11 import version 1 only.
    warnings.filterwarnings("ignore", "Prefer using dashboardv2", DeprecationWarning)
    from grafana_foundation_sdk.builders import dashboard, heatmap  # noqa: F401
