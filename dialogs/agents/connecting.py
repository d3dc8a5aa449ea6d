"""Connecting a model: the way from a model server to an agent that answers with one of its models."""

import re
from collections.abc import Container, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from dialogs.context import connected, limits
from dialogs.errors import Conflict, Invalid
from dialogs.models import Agent, ConnectedProvider, Dialog
from dominds import sealing
from dominds.llm.catalog.catalog import ProviderInfo
from dominds.llm.models.model import LimitUnavailable, LoadedLimit, ProviderKind
from dominds.llm.providers.kinds import KINDS
from dominds.llm.providers.listing import Listing, base_of, list_models, recognise_kind

LOCAL_SECONDS, RECOGNISE_SECONDS, TEST_SECONDS = 0.7, 2.0, 8.0
COMMON = "openai-compatible"
MOST_ID = 48  # characters of an agent's id, before a number that makes it unique
_asking = ThreadPoolExecutor(max_workers=8, thread_name_prefix="model-servers")


@dataclass(frozen=True, slots=True)
class Server:
    """A model server, as somebody typed it, or as ``DOMINDS_LOCAL_SERVERS`` names it."""

    kind: ProviderKind
    base_url: str
    key: str = field(default="", repr=False)

    @classmethod
    def at(cls, kind: str, address: str, key: str = "") -> "Server":
        """Make a server. Without a kind, it gets that of a known provider at this address, or else the common one."""
        chosen = KINDS[kind or COMMON]
        server = cls(chosen, base_of(chosen, address), key)
        if not kind and (known := next((entry for entry in _at(address) if entry.kind.name in KINDS), None)):
            return cls(known.kind, known.base_url.rstrip("/"), key)
        return server

    def with_recognised_kind(self) -> "Server":
        """Return the server with the kind that its API shows, if the kind is not known from the address."""
        if self.kind.name != COMMON or any(_at(self.base_url)):
            return self
        kind = recognise_kind(
            self.base_url, self.key, timeout_seconds=RECOGNISE_SECONDS, allow_private=settings.PRIVATE_WEBHOOKS
        )
        return replace(self, kind=KINDS[kind]) if kind else self

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).netloc[:120]

    @property
    def name(self) -> str:
        return self.kind.label if self.kind.is_local else self.host


@dataclass(frozen=True, slots=True)
class Offer:
    """A model that a server offers, with its window if known, or the reason why it cannot answer yet."""

    model: str
    window: int | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ServerOffers:
    server: Server
    offers: tuple[Offer, ...] = ()
    failure: str = ""


def local_servers() -> list[Server]:
    return [Server.at(kind, address) for kind, address in settings.LOCAL_SERVERS]


def local_offers() -> list[ServerOffers]:
    """Ask all local servers at once. A server that does not answer within ``LOCAL_SECONDS`` counts as absent."""
    asked = {server: _asking.submit(_ask, server) for server in local_servers()}
    wait(asked.values(), timeout=LOCAL_SECONDS)
    return [_in_time(server, future) for server, future in asked.items()]


def _in_time(server: Server, future: "Future[ServerOffers]") -> ServerOffers:
    return future.result() if future.done() else ServerOffers(server, failure=f"{server.host} did not answer in time.")


def _ask(server: Server) -> ServerOffers:
    listing = _list_models(server, LOCAL_SECONDS, allow_private=True)
    return ServerOffers(server, tuple(_offer(server, model) for model in listing.models), listing.failure)


def _offer(server: Server, model: str) -> Offer:
    if not server.kind.needs_limit or server.kind.loaded_window is None:
        return Offer(model)
    match server.kind.loaded_window(server.base_url, model, server.key):
        case LoadedLimit(tokens):
            return Offer(model, window=tokens)
        case LimitUnavailable(reason):
            return Offer(model, problem=reason)


def test(server: Server) -> Listing:
    """Ask a server for its models. Private addresses are allowed if ``PRIVATE_WEBHOOKS`` is on, loopback always."""
    return _list_models(server, TEST_SECONDS, allow_private=settings.PRIVATE_WEBHOOKS)


def _list_models(server: Server, seconds: float, *, allow_private: bool) -> Listing:
    return list_models(server.kind, server.base_url, server.key, timeout_seconds=seconds, allow_private=allow_private)


def _require_answer(server: Server) -> Listing:
    """Return the models that a server lists. Raises ``Invalid`` if it does not list any.

    The servers of ``DOMINDS_LOCAL_SERVERS`` are asked at any address, others by the rules of ``test``.
    """
    is_local = replace(server, key="") in local_servers()
    listing = _list_models(server, LOCAL_SECONDS, allow_private=True) if is_local else test(server)
    if listing.failure:
        raise Invalid(listing.failure)
    return listing


def use(server: Server, model: str) -> Agent:
    """Connect the server if necessary, and return the agent that answers with this model. Raises ``Invalid`` or
    ``Conflict``.

    The server is asked once more, since only a model that it lists can be used.
    """
    listing = _require_answer(server)
    if model not in listing.models:
        raise Invalid(f"{server.host} does not list the model “{model[:80]}”. Choose one that it lists.")
    with transaction.atomic():
        provider_id = _connect(server, model, listing.models)
        return _agent(provider_id, model, server.name)


def change(row: ConnectedProvider, name: str, address: str, key: str) -> str:
    """Save the typed values of a provider if its server answers to them, with the models that it lists now, and return
    a sentence about the changes. Raises ``Invalid``.

    Without a ``key`` the stored one stays. It is never sent to another server.
    """
    server = Server.at(row.kind, address, key)
    if row.sealed_key and not key:
        if _origin(server.base_url) != _origin(row.base_url):
            raise Invalid(f"Type the key again: the stored one is only sent to {urlsplit(row.base_url).netloc}.")
        try:
            server = replace(server, key=sealing.unseal(row.sealed_key))
        except sealing.Unreadable:
            raise Invalid("Type the key again: SECRET_KEY is another one than when it was stored.") from None
    listed_now, before = _require_answer(server).models, set(row.model_ids.splitlines())
    # As in _connect: all models of a person's own server are kept, and of a vendor those that were chosen.
    kept = set(listed_now) if server.kind.is_local else before & set(listed_now)
    row.name, row.base_url, row.model_ids = name, server.base_url, "\n".join(sorted(kept))
    connected.save(row, key)
    news = (("New", kept - before), ("No longer listed", before - kept))
    return " ".join(("Saved.", *(f"{title}: {', '.join(sorted(models))}." for title, models in news if models)))


def state_window(provider_id: str, model: str, tokens: int | None) -> None:
    """Store the window of a model as a person states it; None removes it."""
    row = ConnectedProvider.objects.get(pk=provider_id)
    stated = {**row.stated_windows, model: tokens}
    row.windows = {name: number for name, number in stated.items() if number} or None
    connected.save(row)


def _origin(address: str) -> tuple[str, str]:
    parts = urlsplit(address)
    return parts.scheme, parts.netloc


def used_by(provider_id: str) -> str:
    """Return a sentence about the agents that cannot answer without this provider."""
    agents = [str(agent) for agent in Agent.objects.filter(provider=provider_id, enabled=True)]
    dialogs = Dialog.objects.filter(provider=provider_id, closed_at=None).count()
    says = list[str]()
    if agents:
        says.append(_("Agents that use it: {names}.").format(names=", ".join(agents)))
    if dialogs:
        says.append(_("Dialogs that were moved to it: {number}.").format(number=dialogs))
    return " ".join(says) or _("No agent and no dialog uses it.")


def _connect(server: Server, model: str, models: tuple[str, ...]) -> str:
    """Return the id of the provider at this address. A provider that files describe in full stays unchanged."""
    known = limits.catalog()
    same = next((entry for entry in _at(server.base_url) if entry.kind.name == server.kind.name), None)
    if same and server.key and "apiKeyEnvVar" in known.in_file.get(same.provider_id, ()):
        raise Conflict(
            "key_in_file",
            f"The server's configuration says that the key of {same.name} is in {same.api_key_env}, and goes before "
            f"what is typed here. Set that variable, or take the line out of the configuration.",
        )
    row = ConnectedProvider.objects.filter(pk=same.provider_id).first() if same else None
    # A person's own server runs all models that it lists; a vendor lists hundreds, many of which do not chat.
    wanted = models if server.kind.is_local else (model,)
    if same and row is None and not server.key and all((same.provider_id, each) in known.models for each in wanted):
        return same.provider_id
    row = row or ConnectedProvider(provider_id=same.provider_id if same else free_id(server.host, known.providers))
    row.name, row.kind, row.base_url = same.name if same else server.name, server.kind.name, server.base_url
    row.model_ids = "\n".join(sorted({*row.model_ids.splitlines(), *wanted}))
    connected.save(row, server.key)
    return row.provider_id


def _at(address: str) -> Iterator[ProviderInfo]:
    """Return the known providers at an address."""
    wanted = address.strip().rstrip("/")
    return (entry for entry in limits.catalog().providers.values() if entry.base_url.rstrip("/") == wanted)


def _agent(provider_id: str, model: str, server_name: str) -> Agent:
    """Return an agent that answers with this model, made if there is none. It becomes the default if there is no
    default other than a demo agent.
    """
    agent = Agent.objects.filter(provider=provider_id, model=model, enabled=True, proxy=False).first()
    if agent is None:
        name = model.rpartition("/")[2][:120]
        agent = Agent(id=free_id(name, set(Agent.objects.values_list("pk", flat=True))), name=name)
        agent.provider, agent.model, agent.description = provider_id, model, f"{model} by {server_name}"[:200]
    if not Agent.objects.filter(is_default=True, enabled=True, is_demo=False).exists():
        Agent.objects.filter(is_default=True).update(is_default=False)
        agent.is_default = True
    agent.save()
    return agent


def free_id(text: str, taken: Container[str]) -> str:
    base = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-").lower()[:MOST_ID] or "model"
    numbers = (f"{base}-{number}" for number in range(2, 10_000))
    return next(name for name in (base, *numbers) if name not in taken)
