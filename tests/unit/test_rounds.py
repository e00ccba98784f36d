"""What is told of the runs of a site, from the first one on."""

from __future__ import annotations

from tests.unit.probing import Work, until


def test_a_site_names_what_is_probed_there_before_the_first_run() -> None:
    work = Work()

    async def scenario() -> None:
        site = work.shown.site
        assert "/topics/okp-me-embedded-ordering-wire-" in site.topic
        assert site.subscription == site.topic.replace("/topics/", "/subscriptions/")

    work.run(scenario())


def test_a_site_names_what_its_run_uses() -> None:
    work = Work()

    async def scenario() -> None:
        await until(lambda: work.admin.asked)
        assert [work.shown.site.topic] == work.admin.asked
        await work.first_run()
        (result,) = work.told
        assert (work.shown.site.topic, work.shown.site.subscription) == (result.topic, result.subscription)

    work.run(scenario())
