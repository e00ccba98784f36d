"""Commands that print or write data of other packages."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from prober.alerting.options import DASHBOARDS, NEWS_S, PAGES, SCRAPE_JOB, Options
from prober.cli.options import Configuration, port_option
from prober.cli.process import Format, help_without_command, warn
from prober.durations import duration_s, write_duration
from prober.embedded.catalogue import describe_faults
from prober.embedded.faults import FaultError, parse_fault
from prober.errors import ConfigError
from prober.slo.objectives import objectives_as_json, objectives_as_text

if TYPE_CHECKING:
    from prober.schedule.instances import PlannedInstance


def faults() -> None:
    """Explain the faults that the embedded server can inject, and what must find each."""
    print(describe_faults(), end="")


def probes(config: Configuration = None) -> None:
    """List the probes: guarantee, detectable fault rate, and cost.

    The fault rate is the lowest at which a probe finds a fault. The cost is that on the real service.
    """
    from prober.config.loading import load
    from prober.probes.catalogue import PROBES, ProbeName
    from prober.probes.power import SURE, one_in, power_as_text
    from prober.schedule.forecast import between, detectable_on, price_as_text, price_of
    from prober.schedule.instances import instances_of

    settings = load(config, os.environ, opens_store=False)
    instances = {instance.probe: instance for target in reversed(settings.targets) for instance in instances_of(target)}
    for known in PROBES.values():
        print(f"{known.name}\n    {known.guarantee}")
        if (instance := instances.get(ProbeName(known.name))) is not None:
            print(
                power_as_text(known.opportunities(instance.workload), instance.settings.schedule.longest_gap.total_seconds()),
                end="",
            )
            print(_cost_as_text(instance))
    for (target_name, about), found in detectable_on(settings).items():
        shares = ", ".join(
            f"{one_in(one.share)} within {words}" for one, words in zip(found, ("an hour", "a day", "30 days"), strict=True)
        )
        print(f"{about} on {target_name}: the schedule finds with {SURE:.0%} what goes wrong in {shares}")
    every = [instance for target in settings.targets for instance in instances_of(target)]
    observed = [instance for instance in every if instance.foreign_topic]
    for instance in observed:
        print(f"{instance.name}\n    {instance.experiment.guarantee}")
        print(f"    what it costs depends on your traffic: all that {instance.foreign_topic} gets meanwhile is delivered once more")
    beside = "; what is observed comes on top" if observed else ""
    print(
        f"all of them, on every target and from every vantage: {between(price_of(every))} a month at list price, if the targets are the "
        f"real service; budget.usd_per_month allows {price_as_text(settings.budget.usd_per_month)}{beside}"
    )


def _cost_as_text(instance: PlannedInstance) -> str:
    from prober.schedule.forecast import between, monthly_cost

    cost = monthly_cost(instance)
    return (
        f"    a run publishes {cost.traffic.published:,} messages and receives {cost.traffic.delivered:,}; a month on one target has "
        f"{cost.messages:,.0f} messages of at least {cost.billed.least / 2**30:,.1f} GiB and costs {between(cost.usd)} at list price"
    )


def slos(
    config: Configuration = None,
    output: Annotated[Format, typer.Option("--format", help="Text, or JSON as the nightly jobs read it.")] = Format.TEXT,
) -> None:
    """List the objectives, what each counts, and when a counted thing is bad."""
    from prober.config.loading import load

    objectives = load(config, os.environ, opens_store=False).objectives
    print(objectives_as_json(objectives) if output is Format.JSON else objectives_as_text(objectives))


config_app = typer.Typer(
    help="Show or validate the configuration.", callback=help_without_command, invoke_without_command=True, rich_markup_mode=None
)


@config_app.command("show")
def config_show(file: Annotated[str | None, typer.Argument(metavar="FILE")] = None) -> None:
    """Print the complete configuration, secrets masked."""
    from prober.brokers.endpoint import EMULATOR_VARIABLE
    from prober.config.loading import load, show

    settings = load(file, os.environ, opens_store=False)
    emulator = os.environ.get(EMULATOR_VARIABLE)
    if emulator and any(target.endpoint != emulator for target in settings.targets):
        warn([f"{EMULATOR_VARIABLE}={emulator} replaces the endpoint of every target"])
    print(show(settings), end="")


@config_app.command("check")
def config_check(file: Annotated[str, typer.Argument(metavar="FILE")]) -> None:
    """Validate a configuration file; all problems are listed together. Warnings go to standard error and change nothing."""
    from prober.config.loading import load_with_warnings
    from prober.schedule.forecast import check_budget

    settings, warnings = load_with_warnings(file, os.environ)
    check_budget(settings, os.environ)
    warn(warnings)
    remark = f", with {len(warnings)} warning{'s' if len(warnings) > 1 else ''}" if warnings else ""
    print(f"{file}: valid{remark}")


NEWS: Final = write_duration(timedelta(seconds=NEWS_S))


def alerts(
    config: Annotated[
        str | None, typer.Option(metavar="FILE", help="The configuration; without it the default objectives.")
    ] = None,
    directory: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder of the rule files.")] = Path("alerts"),
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit code 2 if a file is not up to date.")] = False,
    runbooks: Annotated[
        str, typer.Option(metavar="URL", help="The address of the runbooks; by default those of the status page.")
    ] = "",
    dashboards: Annotated[str, typer.Option(metavar="URL", help="The address of Grafana.")] = DASHBOARDS,
    pages: Annotated[str, typer.Option(metavar="URL", help="The address of the prober's status page.")] = PAGES,
    scrape_job: Annotated[
        str, typer.Option(metavar="NAME", help="The name of the scrape job of the prober in Prometheus.")
    ] = SCRAPE_JOB,
    news: Annotated[str, typer.Option(metavar="DURATION", help="How long a finding keeps its alert firing.")] = NEWS,
) -> None:
    """Write Prometheus rules for the objectives of a configuration: recordings, burn rates, alerts.

    By default the links of the alerts to Grafana and to the status page lead to localhost, which does not help the engineer on call: give
    --dashboards and --pages as people reach them. Exit code 0: written, or up to date. 2: wrong usage or configuration, or with --check a
    file that is not up to date.
    """
    from prober.alerting.catalogue import rule_files
    from prober.config.loading import load, written_objectives

    for address in filter(None, (runbooks, dashboards, pages)):
        if not address.startswith(("http://", "https://")):
            raise ConfigError(f"{address}: is no address; write one that begins with https://")
    options = Options(runbooks.rstrip("/"), dashboards.rstrip("/"), pages.rstrip("/"), scrape_job, duration_s(news))
    texts = rule_files(load(config, os.environ, opens_store=False).objectives, options, written_objectives(config, os.environ))
    for name, text in texts.items():
        if check:
            _compare(directory / name, text)
        else:
            _write(directory / name, text)
    print(f"{directory}: {'up to date' if check else 'written'}: {', '.join(texts)}")


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror or error}") from error


def _compare(path: Path, text: str) -> None:
    try:
        there = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    if there != text:
        raise ConfigError(f"{path}: is out of date; write it again without --check")


def embedded(
    port: Annotated[int, port_option("The port for gRPC; 0 takes a free one.")] = 8085,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen, IPv4 or IPv6. Beyond loopback everybody may use it.")
    ] = "127.0.0.1",
    fault: Annotated[
        list[str] | None,
        typer.Option("--fault", metavar="SPEC", help="A fault to inject, such as drop:p=0.1,key=orders-*."),
    ] = None,
    rest_port: Annotated[int | None, port_option("Also serve REST clients on this port; 0 takes a free one.")] = None,
    admin_port: Annotated[int | None, port_option("Also take faults over HTTP on this port; 0 takes a free one.")] = None,
) -> None:
    """Run only the embedded Pub/Sub server, with the faults that you inject."""
    from prober.embedded.server import serve_embedded

    try:
        ip_address(host)
    except ValueError:
        raise ConfigError(
            f"--host must be an IPv4 or IPv6 address of this machine, such as 127.0.0.1 or ::1, not {host!r}"
        ) from None
    try:
        faults = [parse_fault(text) for text in fault or ()]
        asyncio.run(serve_embedded(port, faults, admin_port, host, rest_port=rest_port))
    except FaultError as error:
        raise ConfigError(str(error)) from error
    except OSError as error:
        raise ConfigError(f"{error}; choose another --port, --rest-port, --admin-port or --host") from error
