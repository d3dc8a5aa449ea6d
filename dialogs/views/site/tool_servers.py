"""MCP servers: those of ``mcp.yaml``, which can be seen and tested, and others, which are added, switched off and
removed here.

Only addresses can be added here. A program that is named runs on this machine, so programs stay in the file.
"""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from dialogs.context import connected
from dialogs.context.connected import AddedServer
from dialogs.errors import Refusal
from dialogs.models import Agent, ToolServer
from dialogs.tools import mcp
from dialogs.tools.mcp_config import SERVER_ID, McpFailed, Server, current_config, left_out_of, server_of
from dialogs.tools.registry import TOOLSETS
from dialogs.views.answers import PersonRequest, for_operators
from dialogs.views.forms import clean
from dialogs.views.site.forms import KeyField
from dialogs.views.site.models import with_keys
from dominds.redaction import redact
from dominds.typed_address import with_scheme

MOST_NAMED = 20  # tools in the sentence that a server was added; its page lists all


class TypedURLField(forms.URLField):
    """A field for a web address that may lack its scheme."""

    def to_python(self, value: Any) -> Any:
        return super().to_python(with_scheme(value) if isinstance(value, str) else value)


class ToolServerForm(forms.Form):
    server_id = forms.RegexField(
        SERVER_ID,
        max_length=32,
        label=gettext_lazy("Name"),
        widget=forms.TextInput({"autocomplete": "off"}),
        help_text=gettext_lazy("Letters, digits, dashes and underscores. Its tools are called after it."),
    )
    url = TypedURLField(
        max_length=500,
        assume_scheme="https",
        label=gettext_lazy("Address"),
        widget=forms.TextInput(
            {
                "inputmode": "url",
                "placeholder": "https://tools.example.com/mcp",
                "autocomplete": "off",
                "spellcheck": "false",
            }
        ),
    )
    key = KeyField(label=gettext_lazy("Key"), help_text=gettext_lazy("Sent as a bearer token, and stored encrypted."))

    def clean_server_id(self) -> str:
        """Check the whole id, since the field only searches for the pattern in it, and that it is free."""
        name = str(self.cleaned_data["server_id"])
        if not SERVER_ID.fullmatch(name):
            raise forms.ValidationError(_("Letters, digits, dashes and underscores. Its tools are called after it."))
        if name in TOOLSETS or name in current_config().in_file or ToolServer.objects.filter(pk=name).exists():
            raise forms.ValidationError(_("There is a server of this name already."))
        return name


@for_operators
@require_GET
def index(request: PersonRequest) -> HttpResponse:
    return _page(request)


def _page(request: PersonRequest, status: int = 200, **more: Any) -> HttpResponse:
    """Show the page. In ``more``, ``tested`` is a server's id, and ``tools`` or ``failure`` its answer."""
    connected.follow()
    config = current_config()
    rows = {row.server_id: row for row in ToolServer.objects.all()}
    named = dict.fromkeys([*config.servers, *config.off, *sorted(config.in_file), *rows])
    context = {
        "servers": [
            {
                "id": name,
                "server": config.servers.get(name),
                "off": config.off.get(name, ""),
                "row": None if name in config.in_file else rows.get(name),
                "hidden": name in rows and name in config.in_file,
                "agents": _agents_with(name),
            }
            for name in named
        ],
        "problems": config.problems,
        "form": ToolServerForm(),
        "section": "agents",
        **more,
    }
    return render(request, "agents/tool_servers.html", context, status=status)


def _agents_with(server_id: str) -> list[Agent]:
    own = mcp.PREFIX + server_id
    return [
        agent
        for agent in Agent.objects.filter(enabled=True)
        if {"*", server_id} & set(agent.toolsets) - {f"!{server_id}"}
        or any(str(name).partition("/")[0] == own for name in agent.tools)
    ]


@with_keys
@require_POST
def add(request: PersonRequest) -> HttpResponse:
    """Save a server once it has answered with its tools."""
    form = ToolServerForm(request.POST)
    try:
        given = clean(form)
        row = ToolServer(server_id=given["server_id"], url=given["url"])
        tools = mcp.list_tools_now(server_of(AddedServer(row.server_id, row.url, enabled=True, key=given["key"])))
    except (Refusal, McpFailed) as failure:
        messages.error(request, _("Not added. {reason}").format(reason=redact(str(failure))))
        return _page(request, status=400, form=form)
    connected.save(row, given["key"])
    text = _("Added, with {number} tools: {tools}. Agents that tick {name} have them from the next message on.")
    named = ", ".join(tool.name for tool in tools[:MOST_NAMED]) + ("…" if len(tools) > MOST_NAMED else "")
    messages.success(request, text.format(number=len(tools), tools=named, name=row.server_id))
    return redirect("tool-servers")


@for_operators
@require_POST
def test(request: PersonRequest, server_id: str) -> HttpResponse:
    """Ask a server for its tools now, past the cache."""
    server: Server | None = current_config().servers.get(server_id)
    if server is None:
        raise Http404
    try:
        tools = mcp.list_tools_now(server)
        return _page(request, tested=server_id, tools=tools, left_out=left_out_of(server_id))
    except McpFailed as failure:
        return _page(request, tested=server_id, failure=redact(str(failure)))


@for_operators
@require_POST
def switch(request: PersonRequest, server_id: str) -> HttpResponse:
    row, on = get_object_or_404(ToolServer, pk=server_id), request.POST.get("on") == "yes"
    row.enabled = on
    connected.save(row)
    text = _("{name} is on: agents have its tools again.") if on else _("{name} is off: no agent has its tools.")
    messages.success(request, text.format(name=server_id))
    return redirect("tool-servers")


@for_operators
@require_POST
def remove(request: PersonRequest, server_id: str) -> HttpResponse:
    if connected.remove(ToolServer, server_id):
        messages.success(request, _("Removed, with its key. What the server's configuration says of it still holds."))
    else:
        messages.error(request, _("There is no such server, or it was removed before. Nothing was changed."))
    return redirect("tool-servers")
