"""The official SDKs' clients, one per server and key, so that connections are reused and authentication is theirs."""

import ipaddress
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpcore2
import httpx2
import stamina

from dominds.llm.errors import complaint_of_response, error_of, readable
from dominds.llm.exchange import DEFAULT_TIMEOUTS, Exchange, Timeouts, exchange_being_opened, gather_seconds
from dominds.llm.provider import NetworkFailed, ProviderError, ProviderTimeout

CONNECT_TRIES = 3  # only while nothing was sent; every other retry is the driver's, through rows
MAX_CONNECTIONS = 2000
KEEPALIVE_CONNECTIONS = 200
KEEPALIVE_SECONDS = 30.0
READS_AT_ONCE = 3  # of an answer's beginning, its headers among them
THIN_BYTES = 16 * 1024
_making = threading.Lock()  # a client costs 30 ms: a hundred first calls at once must not make a hundred
NO_KEY = "none"  # given to an SDK that insists on one, and never sent


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model server and how to talk to it. ``key`` may be empty: local servers ask for none."""

    base_url: str
    key: str = field(default="", repr=False)
    timeouts: Timeouts = DEFAULT_TIMEOUTS

    @property
    def host(self) -> str:
        """How a person knows the server; stands at the head of every error."""
        parts = urlsplit(self.base_url)
        return f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname or self.base_url


def openai_exchange(endpoint: Endpoint, path: str, body: bytes, *, is_openai: bool = False) -> Exchange:
    """A streaming POST through the OpenAI SDK's client, without its typed layers (149 ms on a long request)."""
    with _making:
        client = _openai_client(endpoint, is_openai)
    return _exchange(endpoint, client, path, body, {} if endpoint.key else {"Authorization": _omitted_by_openai()})


def anthropic_exchange(endpoint: Endpoint, path: str, body: bytes, *, is_anthropic: bool = False) -> Exchange:
    """The same through the Anthropic SDK's client. Compatible servers differ in the key's header: they get both."""
    with _making:
        client = _anthropic_client(endpoint)
    if not endpoint.key:
        return _exchange(endpoint, client, path, body, {"Authorization": _omitted_by_anthropic()})
    return _exchange(endpoint, client, path, body, {} if is_anthropic else {"X-Api-Key": endpoint.key})


def _exchange(endpoint: Endpoint, client: Any, path: str, body: bytes, headers: dict[str, Any]) -> Exchange:
    options = {"headers": {"Accept": "text/event-stream", "Accept-Encoding": "identity", **headers}}

    def post() -> httpx2.Response:
        answer = client.post(
            path, cast_to=httpx2.Response, content=body, options=options, stream=True, stream_cls=object
        )
        assert isinstance(answer, httpx2.Response)
        return answer

    return Exchange(lambda: _opened(post, endpoint), endpoint.host, endpoint.timeouts)


def _opened(post: Callable[[], httpx2.Response], endpoint: Endpoint) -> httpx2.Response:
    """Post with a few quick retries of the connection, and translate what the SDK raises."""
    exchange = exchange_being_opened()

    def worth_another_connection(error: Exception) -> bool:
        return isinstance(error.__cause__, httpx2.ConnectError) and not (exchange and exchange.is_cut)

    try:
        try:
            return post()
        except Exception as error:
            if not worth_another_connection(error):
                raise
        for attempt in stamina.retry_context(
            on=worth_another_connection,
            attempts=CONNECT_TRIES - 1,
            timeout=endpoint.timeouts.connect,
            wait_initial=0.1,
            wait_max=1.0,
        ):
            with attempt:
                return post()
    except ProviderError:
        raise
    except Exception as error:  # noqa: BLE001 - two SDKs' families meet here, each with its own base class
        raise _translated(error, endpoint) from None  # their texts may quote headers
    raise AssertionError("stamina either returns or raises")


def _translated(error: Exception, endpoint: Endpoint) -> ProviderError:
    response = getattr(error, "response", None)
    if isinstance(response, httpx2.Response):
        complaint = complaint_of_response(response.status_code, response.headers, response.content)
        found = error_of(complaint, endpoint.host)
        return type(found)(without_key(str(found), endpoint.key), retry_after_seconds=found.retry_after_seconds)
    cause = error.__cause__ or error
    if isinstance(cause, httpx2.ConnectTimeout | httpx2.PoolTimeout):
        return ProviderTimeout(f"{endpoint.host} did not accept a connection within {endpoint.timeouts.connect:g} s.")
    if isinstance(cause, httpx2.TimeoutException):
        return ProviderTimeout(f"{endpoint.host} sent nothing for {endpoint.timeouts.first_byte:g} s.")
    if isinstance(cause, httpx2.ConnectError):
        said = readable(str(cause))
        return NetworkFailed(f"No connection to {endpoint.host}: {said}. Check baseUrl, and that the server runs.")
    said = without_key(readable(str(cause)), endpoint.key) or type(cause).__name__
    return NetworkFailed(f"The connection to {endpoint.host} failed: {said}.")


def without_key(text: str, key: str) -> str:
    """Servers like to quote the key that they reject."""
    return text.replace(key, "[key]") if len(key) >= 4 else text


@cache
def _openai_client(endpoint: Endpoint, is_openai: bool) -> Any:
    import openai

    # The SDK would send the operator's OpenAI organization to any server: only OpenAI itself may have it.
    own = {} if is_openai else {"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()}
    return openai.OpenAI(
        api_key=endpoint.key or NO_KEY,
        base_url=endpoint.base_url,
        max_retries=0,
        default_headers=own,  # type: ignore[arg-type]  # Omit is how the SDK takes a header away
        http_client=_http_client(endpoint),
    )


@cache
def _anthropic_client(endpoint: Endpoint) -> Any:
    import anthropic

    # The key is given in any case: without one the SDK would look for the operator's own in the environment.
    return anthropic.Anthropic(
        api_key=endpoint.key or NO_KEY,
        base_url=endpoint.base_url.rstrip("/").removesuffix("/v1"),
        max_retries=0,
        http_client=_http_client(endpoint),
    )


def _omitted_by_openai() -> object:
    import openai

    return openai.Omit()


def _omitted_by_anthropic() -> object:
    import anthropic

    return anthropic.Omit()


def _http_client(endpoint: Endpoint) -> httpx2.Client:
    """No redirects: they would carry the key elsewhere. Proxies of the environment hold, except for this machine."""
    limits = httpx2.Limits(
        max_connections=MAX_CONNECTIONS,
        max_keepalive_connections=KEEPALIVE_CONNECTIONS,
        keepalive_expiry=KEEPALIVE_SECONDS,
    )
    waits = endpoint.timeouts
    client = httpx2.Client(
        timeout=httpx2.Timeout(waits.first_byte, connect=waits.connect, pool=waits.connect),
        limits=limits,
        follow_redirects=False,
        trust_env=not is_loopback(endpoint.base_url),
    )
    for transport in _transports_of(client):
        transport._pool._network_backend = SocketNotingBackend(transport._pool._network_backend)
    return client


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _transports_of(client: httpx2.Client) -> Iterator[Any]:
    """httpx2 has no public way to set a network backend, hence the private names; without them an abort only waits."""
    mounted = getattr(client, "_mounts", {}).values()
    for transport in (getattr(client, "_transport", None), *mounted):
        if hasattr(getattr(transport, "_pool", None), "_network_backend"):
            yield transport


class SocketNotingBackend(httpcore2.NetworkBackend):
    """Tells the exchange under way in this thread which socket it uses, before the server has answered anything."""

    def __init__(self, inner: httpcore2.NetworkBackend) -> None:
        self._inner = inner

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        def connect() -> httpcore2.NetworkStream:
            return self._inner.connect_tcp(host, port, timeout, local_address, socket_options)

        exchange = exchange_being_opened()
        return SocketNotingStream(exchange.connected(connect) if exchange else connect())

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)


class SocketNotingStream(httpcore2.NetworkStream):
    def __init__(self, inner: httpcore2.NetworkStream) -> None:
        self._inner = inner
        self._reads = 0  # since the request was sent
        self._read_at = 0.0  # monotonic seconds
        self._is_thin = False  # the last read found no more than some tokens
        self._note()

    def _note(self) -> None:
        exchange = exchange_being_opened()
        if exchange is not None:
            exchange.note_socket(self._inner.get_extra_info("socket"))

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._gather()
        found = self._inner.read(max_bytes, timeout)
        self._reads += 1
        self._read_at, self._is_thin = time.monotonic(), len(found) < THIN_BYTES
        return found

    def _gather(self) -> None:
        """With many answers at once, wake up less often for more tokens; the beginning of an answer waits for nothing."""
        if self._reads >= READS_AT_ONCE and self._is_thin and (seconds := gather_seconds()):
            time.sleep(max(0.0, self._read_at + seconds - time.monotonic()))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._note()  # a connection from the pool is first met here
        self._reads = 0
        self._inner.write(buffer, timeout)

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return SocketNotingStream(self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def forget_clients() -> None:
    """Drop all clients; a forked child must not share its parent's connections."""
    global _making  # noqa: PLW0603 - the parent may have held it while it forked
    _making = threading.Lock()
    _openai_client.cache_clear()
    _anthropic_client.cache_clear()


os.register_at_fork(after_in_child=forget_clients)
