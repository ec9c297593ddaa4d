"""`AllowedNames`: checks the `Host` and `Origin` headers of requests to a local server.

Every web page in a browser can send requests to this machine. `Host` is the name that the page used: a foreign name
that resolves to this machine (DNS rebinding) is refused. `Origin` is the page itself; a script cannot change it.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from steelyard.errors import SteelyardError

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
_PORTS = {"http": 80, "https": 443}
_ORIGIN = re.compile(r"(https?)://(\[[0-9a-f:.]+\]|[0-9a-z._-]+)(?::([0-9]{1,5}))?")


@dataclass(frozen=True)
class AllowedNames:
    """The hosts and origins that a server answers to.

    Args:
        address: Address on which the server listens.
        origins: Additional origins, such as "https://app.foxglove.dev"; the host of each is also allowed.
    """

    address: str = "127.0.0.1"
    origins: Sequence[str] = ()

    def __post_init__(self) -> None:
        for origin in self.origins:
            if _origin_parts(origin) is None:
                raise SteelyardError(
                    f"--allow-origin is '{origin}'; write the scheme and the host of a page, such as "
                    "https://app.foxglove.dev, without a path."
                )

    def refusal(self, hosts: Iterable[str], origins: Iterable[str] = ()) -> str:
        """Return the reason for refusing a request, or "" for an allowed one.

        Args:
            hosts: All `Host` headers of the request.
            origins: All `Origin` headers of the request.
        """
        names, pages = list(hosts), list(origins)
        if len(names) != 1 or not self._knows_host(names[0]):
            return "Steelyard does not answer to this host name."
        if len(pages) > 1 or any(not self._knows_origin(page) for page in pages):
            return "Steelyard does not answer to other pages."
        return ""

    def _knows_host(self, host: str) -> bool:
        name = _host_name(host)
        if name is None:
            return False
        if name in LOOPBACK_NAMES or name in {_origin_parts(origin)[1] for origin in self.origins}:  # type: ignore[index]
            return True
        if self.address in LOOPBACK_NAMES:
            return False
        # The user opened the server to a network. DNS can redirect a name, but not an address.
        return _is_address(name) or name in {self.address.lower(), socket.gethostname().lower()}

    def _knows_origin(self, origin: str) -> bool:
        parts = _origin_parts(origin)
        if parts is None:
            return False
        return parts[1] in LOOPBACK_NAMES or parts in {_origin_parts(allowed) for allowed in self.origins}


def _host_name(host: str) -> str | None:
    """The name in a `Host` header, without its port; None if the header is malformed."""
    parts = _origin_parts(f"http://{host}")
    return None if parts is None else parts[1]


def _origin_parts(origin: str) -> tuple[str, str, int] | None:
    """Scheme, host and port of an origin; None for any other text."""
    match = _ORIGIN.fullmatch(origin.lower())
    if match is None:
        return None
    scheme, name, port = match.groups()
    number = int(port) if port else _PORTS[scheme]
    return (scheme, name.strip("[]"), number) if number <= 65535 else None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
