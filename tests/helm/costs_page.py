"""The page docs/costs.md, which `make generate` writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from prober.config.values import write_size
from prober.probes.cost import REQUEST_BYTES_MIN, USD_PER_TIB, Bounds, message_bytes, price_usd
from prober.schedule.forecast import between, monthly_cost, price_of
from tests.helm import costs
from tests.helm.costs import ENVIRONMENTS, GIB, Environment

INTRODUCTION: Final = """\
# Costs

The cost of the chart's values files in a month of 30 days, to choose one: US dollars by Google's list prices, without discounts and
free tiers. Look the [prices](#prices) up before you rely on a sum: it has not been compared with a bill yet. `make generate` writes
this page.
"""

_PRODUCTION: Final = """\
Pub/Sub bills at least 1,000 bytes per request. The lower sum assumes full responses of streams, the higher one a single message in
each. If every message were a request of its own, production would cost {alone} of Pub/Sub. `values-test.yaml` publishes on 50 keys
instead of 10.

Not counted: the cluster ($73 a month, which Google credits once per billing account), traffic between regions ($0.02 to $0.08 per
GiB; a target of production moves about {between_gib:,.0f} GiB a month), Cloud Monitoring's API, logs beyond 50 GiB, the image
registry, drills and runs on demand.
"""

_METRICS: Final = """\
Metrics count for Google Cloud Managed Service for Prometheus; your own Prometheus costs none of this. A prober exports at most
{alone} series, {per_target} per target, {per_instance} per probe instance and {per_subscription} per subscription, an API {of_api}.
`scrape.interval: 60s` halves the largest part; alerts then fire up to half a minute later.
"""

_HISTORY: Final = """\
## Growth of the history

Each message published or received is two events, {per_event:.1f} bytes each on disk (random message ids: {random:.1f} more).
"""

_SIZE_MAX: Final = """\
By default `history.retention` is {retention:.0f} days and `history.size_max` {default_size}. Production writes {month_gib:.0f} GiB
in {retention:.0f} days ({most_gib:.0f} GiB with random ids), so its values file sets `history.size_max: {size_max}`; the bucket
costs ${usd:.2f} a month.

A history that meets `size_max` first loses its oldest hours before `retention`: no alert fires, and `verify`, `reverify` and
`history export` find nothing older. Objectives keep their whole period.
"""

_READ: Final = "undated copy, read on 2026-11-22"
_PRICES: Final = (
    (
        "Pub/Sub, published or delivered",
        f"${USD_PER_TIB:.0f} per TiB, at least {REQUEST_BYTES_MIN:,} bytes per request, 10 GiB free",
        f"cloud.google.com/pubsub/pricing, {_READ}",
    ),
    (
        "samples ingested",
        f"${costs.USD_PER_MILLION_SAMPLES} per million, up to 50 billion",
        f"Managed Service for Prometheus, as quoted by others, {_READ}",
    ),
    (
        "series read by rules",
        f"${costs.USD_PER_MILLION_SERIES_READ:.2f} per million, one million free",
        "Cloud Monitoring, release note for 2025-10-02; perhaps not for the evaluator of rules",
    ),
    (
        "CPU and memory of pods",
        f"${costs.USD_PER_CPU_HOUR} per vCPU and hour, ${costs.USD_PER_MEMORY_GIB_HOUR} per GiB and hour",
        "GKE Autopilot, us-central1, list of 2026-09, as quoted by others",
    ),
    (
        "bucket",
        f"${costs.USD_PER_BUCKET_GIB:.3f} per GiB and month, ${costs.USD_PER_THOUSAND_WRITES} per 1,000 writes",
        f"Cloud Storage, Standard, us-central1 and europe-west1, {_READ}",
    ),
    (
        "volumes",
        f"${costs.USD_PER_DISK_GIB:.2f} per GiB and month",
        "balanced persistent disk, us-central1, list of 2026, as quoted by others",
    ),
    (
        "PostgreSQL",
        f"${costs.USD_PER_DATABASE_HOUR:.4f} per hour (1 vCPU, 3.75 GiB), ${costs.USD_PER_DATABASE_GIB} per GiB and month of disk",
        "Cloud SQL Enterprise, us-central1, 2026-05, as quoted by others; that of the disk is unconfirmed",
    ),
)


def page() -> str:
    """The whole page."""
    environments = [Environment(name) for name in ENVIRONMENTS]
    production = environments[0]
    measured = {
        "alone": costs.SERIES_ALONE,
        "per_target": costs.SERIES_PER_TARGET,
        "per_instance": costs.SERIES_PER_INSTANCE,
        "per_subscription": costs.SERIES_PER_SUBSCRIPTION,
        "of_api": costs.SERIES_OF_API,
    }
    parts = [INTRODUCTION, _sums(environments), _production(production)]
    parts += ["## Quantities\n", _table(*_quantities(environments)), _METRICS.format(**measured), _probes()]
    history = _HISTORY.format(per_event=costs.BYTES_PER_EVENT, random=costs.MORE_BYTES_WITH_RANDOM_IDS)
    parts += [history, _table(*_histories(environments)), _size_max(production)]
    parts += ["## Prices\n", _table(("what", "price", "source"), _PRICES)]
    return "\n".join(parts)


def _sums(environments: Iterable[Environment]) -> str:
    head = ("values", "Pub/Sub", "metrics", "compute", "storage", "PostgreSQL", "in all")
    rows = [
        (
            f"`values-{one.name}.yaml`",
            _dollars(one.pubsub_usd),
            *(f"${usd:,.0f}" for usd in (one.metrics_usd, one.compute_usd, one.storage_usd, one.database_usd)),
            f"**{_dollars(one.total_usd)}**",
        )
        for one in environments
    ]
    return _table(head, rows)


def _production(production: Environment) -> str:
    return _PRODUCTION.format(
        alone=_dollars(price_usd(Bounds(1, 1).times(production.messages * REQUEST_BYTES_MIN))),
        between_gib=production.pubsub_bytes.least / len(production.config.targets) / GIB,
    )


def _quantities(environments: Sequence[Environment]) -> tuple[Sequence[str], list[Sequence[str]]]:
    head = ("a month", *(one.name for one in environments))
    return head, [
        ("targets, probe instances", *(f"{len(one.config.targets)}, {len(one.probe_instances)}" for one in environments)),
        ("pods: probers, APIs", *(f"{one.pods['prober']}, {one.pods.get('api', 0)}" for one in environments)),
        ("million messages", *(f"{one.messages / 1e6:,.0f}" for one in environments)),
        ("series", *(f"{one.series:,}" for one in environments)),
        ("million samples scraped", *(f"{one.samples / 1e6:,.0f}" for one in environments)),
    ]


def _histories(environments: Sequence[Environment]) -> tuple[Sequence[str], list[Sequence[str]]]:
    head = ("history", "million events a day", "GiB a day", "days until `size_max`")
    kept = [Environment(""), *(one for one in environments if one.has_history)]
    return head, [
        (
            one.name or "one target, defaults",
            f"{one.events_per_day / 1e6:,.0f}",
            f"{one.history_bytes_per_day / GIB:.1f}",
            f"{one.config.history.size_max / one.history_bytes_per_day:.0f}",
        )
        for one in kept
    ]


def _size_max(production: Environment) -> str:
    settings, default = production.config.history, Environment("")
    retention = settings.retention.total_seconds() / costs.DAY_S
    month_gib = production.history_bytes_per_day * retention / GIB
    return _SIZE_MAX.format(
        retention=retention,
        default_size=write_size(default.config.history.size_max),
        month_gib=month_gib,
        most_gib=month_gib * (1 + costs.MORE_BYTES_WITH_RANDOM_IDS / costs.BYTES_PER_EVENT),
        size_max=write_size(settings.size_max),
        usd=month_gib * costs.USD_PER_BUCKET_GIB,
    )


def _probes() -> str:
    rows = []
    for instance in Environment("").probe_instances:
        cost = monthly_cost(instance)
        rows.append((f"`{instance.probe}`", f"{cost.runs:,.0f}", f"{cost.traffic.published:,.0f}", between(cost.usd)))
    rows.append(("all", "", "", f"**{between(price_of(Environment('').probe_instances))}**"))
    head = ("probe", "runs a month", "published a run", "price")
    each = message_bytes(instance.settings.sizes)
    limit = "the [objectives](configuration.md#minimum-rates) limit how far you can reduce it"
    words = f"A message of 256 bytes is billed as {each:.0f} bytes. `schedule.interval`, `keys` and `messages` scale the cost;\n{limit}.\n"
    return f"### One target, one vantage, default probes\n\n{_table(head, rows)}\n{words}"


def _dollars(usd: Bounds) -> str:
    least, most = f"${usd.least:,.0f}", f"${usd.most:,.0f}"
    return least if least == most else f"{least} to {most}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
