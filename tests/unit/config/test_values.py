"""How values are written and read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from prober.config.values import mask_password, name_of_host, read_ratio, read_size, write_size


@given(st.integers(0, 10**15))
def test_a_size_reads_as_it_is_written(size: int) -> None:
    assert read_size(write_size(size)) == size


@pytest.mark.parametrize(("written", "size"), [("10GiB", 10 * 2**30), ("1.5kB", 1500), ("512 MB", 512 * 10**6), (7, 7), ("7B", 7)])
def test_sizes(written: object, size: int) -> None:
    assert read_size(written) == size


@pytest.mark.parametrize(
    ("written", "ratio"),
    [("99.9%", 0.999), ("99.99%", 0.9999), ("99.95 %", 0.9995), ("50%", 0.5), (0.999, 0.999), ("99.999%", 0.99999)],
)
def test_a_percentage_is_the_decimal_it_stands_for(written: object, ratio: float) -> None:
    assert read_ratio(written) == ratio


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("sqlite:///file.db", "sqlite:///file.db"),
        ("postgresql://u@h/n", "postgresql://u@h/n"),
        ("postgresql://u:h@h/h", "postgresql://u:**********@h/h"),
    ],
)
def test_only_the_password_of_a_url_is_masked(url: str, masked: str) -> None:
    assert mask_password(SecretStr(url)) == masked


@pytest.mark.parametrize(
    ("host", "name"), [("web-1", "web-1"), ("Web_1.example.com", "web-1-example-com"), ("...", "prober"), ("x" * 99, "x" * 63)]
)
def test_a_host_gives_its_name(host: str, name: str) -> None:
    assert name_of_host(host) == name
