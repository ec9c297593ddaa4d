"""Allowed hosts and origins of a local server."""

from __future__ import annotations

import socket

import pytest

from steelyard.errors import SteelyardError
from steelyard.ground.local_web import AllowedNames

HERE = ["127.0.0.1:8765", "localhost", "localhost:1", "LOCALHOST:8765", "[::1]:8765", "[::1]"]
ELSEWHERE = [
    "evil.example", "evil.example:8765", "127.0.0.1.evil.example", "localhost.evil.example:8765", "192.168.1.9:8765",
    "127.0.0.1@evil.example", "evil.example/127.0.0.1", "", " 127.0.0.1", "127.0.0.1 ", "127.0.0.1:x",
    "127.0.0.1:99999", "[::1",
    "::1", "local\thost", "127.0.0.1\n", "0.0.0.0:8765", "127.1", "localhost#", "localhost?a", "lоcalhost",
]  # fmt: skip


@pytest.mark.parametrize("host", HERE)
def test_names_of_this_machine_are_allowed(host: str) -> None:
    assert AllowedNames().refusal([host]) == ""


@pytest.mark.parametrize("host", ELSEWHERE)
def test_other_names_are_refused(host: str) -> None:
    """A name that an attacker points at this machine (DNS rebinding) is still the attacker's name."""
    assert "host name" in AllowedNames().refusal([host])


def test_a_missing_or_duplicate_host_header_is_refused() -> None:
    assert AllowedNames().refusal([])
    assert AllowedNames().refusal(["127.0.0.1", "127.0.0.1"])


@pytest.mark.parametrize("origin", ["http://localhost:8080", "https://127.0.0.1", "http://[::1]:3000"])
def test_pages_of_this_machine_are_allowed(origin: str) -> None:
    assert AllowedNames().refusal(["localhost"], [origin]) == ""


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "file://", "", "http://localhost.evil.example", "http://localhost/x", "localhost",
     "http://localhost@evil.example", "ftp://localhost", "http://local\thost", "https://app.foxglove.dev"],
)  # fmt: skip
def test_other_pages_are_refused(origin: str) -> None:
    assert "pages" in AllowedNames().refusal(["localhost"], [origin])


def test_an_additional_origin_is_allowed_with_its_scheme_and_port_only() -> None:
    names = AllowedNames(origins=("https://app.foxglove.dev",))
    assert names.refusal(["localhost"], ["https://app.foxglove.dev"]) == ""
    assert names.refusal(["localhost"], ["https://APP.foxglove.dev:443"]) == ""
    assert names.refusal(["localhost"], ["http://app.foxglove.dev"])
    assert names.refusal(["localhost"], ["https://app.foxglove.dev:8443"])
    assert names.refusal(["localhost"], ["https://app.foxglove.dev", "https://app.foxglove.dev"])
    assert AllowedNames(origins=("http://robot.local:9464",)).refusal(["robot.local:9464"]) == ""


def test_a_server_on_a_network_allows_addresses_and_its_own_name() -> None:
    """DNS can redirect a foreign name, but not an address."""
    names = AllowedNames("0.0.0.0")
    for host in ("192.168.1.9:8765", "[fe80::1]:8765", socket.gethostname().lower(), "localhost"):
        assert names.refusal([host]) == "", host
    assert names.refusal(["evil.example"])
    assert AllowedNames("robot.local").refusal(["robot.local"]) == ""


@pytest.mark.parametrize("origin", ["app.foxglove.dev", "https://a.b/path", "*", "", "null", "javascript:1"])
def test_an_invalid_origin_is_refused_with_an_example(origin: str) -> None:
    with pytest.raises(SteelyardError, match=r"--allow-origin.*https://app\.foxglove\.dev"):
        AllowedNames(origins=(origin,))
