"""Dialogs and their rows in the admin, read-only."""

import json
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timezone import localtime

from dialogs.models import (
    Artifact,
    Attachment,
    Client,
    Dialog,
    Event,
    ForcingRefusal,
    Generation,
    Question,
    RecallChoice,
    Reminder,
    RequestPart,
    Round,
    Turn,
    TurnVectors,
)
from dialogs.store import events, json_shapes
from dominds.readonly_admin import NewestValues, RecordAdmin, RecordInline, sees_deleted, shorten
from remediation.spending import Spent, in_usd

LISTS = (
    ("turns", "admin:dialogs_turn_changelist"),
    ("generations", "admin:dialogs_generation_changelist"),
    ("events", "admin:dialogs_event_changelist"),
    ("rewrites", "admin:remediation_remediationrun_changelist"),
    ("archive", "admin:remediation_removedunit_changelist"),
    ("context events", "admin:remediation_contextevent_changelist"),
)


class RoundInline(RecordInline):
    model = Round
    fields = ("number", "cause", "package", "carried", "created_at")


class ReminderInline(RecordInline):
    model = Reminder
    fields = ("position", "text", "created_at")


class OpenQuestionInline(RecordInline):
    model = Question
    verbose_name_plural = "open questions"
    fields = ("kind", "text", "created_at")
    show_change_link = True

    def get_queryset(self, request: HttpRequest) -> QuerySet[Question]:
        return super().get_queryset(request).filter(state=Question.State.OPEN)


@admin.register(Dialog)
class DialogAdmin(RecordAdmin):
    list_display = ("__str__", "owner", "agent", "state", "round_number", "last_turn_seq", "cost", "active_at")
    list_filter = ("state", "agent", "active_at")
    list_select_related = ("owner", "agent")
    search_fields = ("=id", "title", "owner__username")
    ordering = ("-active_at",)
    inlines = (RoundInline, ReminderInline, OpenQuestionInline)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Dialog]:
        """Include the deleted dialogs for superusers."""
        if not sees_deleted(request):
            return super().get_queryset(request)
        return Dialog._base_manager.filter(Q(removed_at=None) | Q(expires_at__isnull=False)).order_by(*self.ordering)

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        return (*self.list_display, "deletion") if sees_deleted(request) else self.list_display

    @admin.display(description="deleted", ordering="removed_at")
    def deletion(self, dialog: Dialog) -> str:
        if dialog.removed_at is None or dialog.expires_at is None:
            return "–"
        return f"deleted, purged on {date_format(localtime(dialog.expires_at))}"

    @admin.display(ordering="cost_usd")
    def cost(self, dialog: Dialog) -> str:
        return str(Spent(dialog.cost_usd, dialog.unpriced_generations))

    @admin.display(description="everything of it")
    def lists(self, dialog: Dialog) -> SafeString:
        links = [(reverse(address), dialog.pk, name) for name, address in LISTS]
        return format_html_join(" · ", '<a href="{}?dialog__id__exact={}">{}</a>', links)

    @admin.display(description="export")
    def exports(self, dialog: Dialog) -> SafeString:
        addresses = (reverse("export-markdown", args=[dialog.pk]), reverse("export-json", args=[dialog.pk]))
        return format_html('<a href="{}">Markdown</a> · <a href="{}">JSON</a>', *addresses)

    @admin.display(description="other settings")
    def trial(self, dialog: Dialog) -> SafeString:
        address = reverse("admin:dialogs_agent_dry_run", args=[dialog.agent_id])
        return format_html('<a href="{}?dialog={}">Try them on this dialog</a>', address, dialog.pk)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        deleted = ["deletion"] if obj is not None and obj.removed_at else []  # then it has no export and no page
        shown = deleted or ["exports", "trial"]
        return ["lists", *shown, *(field.name for field in Dialog._meta.concrete_fields)]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return self.get_fields(request, obj)

    def view_on_site(self, dialog: Dialog) -> str | None:
        return None if dialog.removed_at else reverse("dialog", args=[dialog.pk])


class OfDialog(RecordAdmin):
    """An admin for tables whose rows are mostly looked up for one dialog."""

    list_select_related: ClassVar[tuple[str, ...]] = ("dialog",)
    search_fields: ClassVar[tuple[str, ...]] = ("=dialog__id",)


class NumberedInDialog(OfDialog):
    """An admin for rows with a ``seq``. Within one dialog they are ordered by it, which has an index there."""

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        return ("-seq",) if request.GET.keys() & {"q", "dialog__id__exact"} else ("-pk",)


@admin.register(Turn)
class TurnAdmin(NumberedInDialog):
    list_display = ("seq", "dialog", "round_number", "role", "status", "start", "created_at")
    list_filter = ("role", "status")

    @admin.display(description="text")
    def start(self, turn: Turn) -> str:
        return shorten(turn.text)


@admin.register(Generation)
class GenerationAdmin(OfDialog):
    """Model calls. ``guided`` says that guidance was given with a call; its text is stored nowhere."""

    list_display = (
        "id",
        "dialog",
        "purpose",
        "outcome",
        "attempt",
        "guided",
        "prompt_tokens",
        "completion_tokens",
        "cost",
        "level",
        "started_at",
    )
    list_filter = ("purpose", "outcome", "guided", ("provider", NewestValues), "snapshot__level", "started_at")
    list_select_related = ("dialog", "snapshot")
    search_fields = ("=dialog__id", "model", "error_kind", "error")

    @admin.display(ordering="snapshot__level")
    def level(self, generation: Generation) -> str:
        snapshot = getattr(generation, "snapshot", None)
        return snapshot.level if snapshot else "–"

    @admin.display(ordering="cost_usd")
    def cost(self, generation: Generation) -> str:
        return "–" if generation.cost_usd is None else in_usd(generation.cost_usd)

    @admin.display(description="guidance given")
    def guidance_given_at(self, generation: Generation) -> Any:
        return generation.started_at if generation.guided else "no"

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("guidance_given_at", "level")


class TypeFilter(admin.SimpleListFilter):
    """A filter for rows that hold an event of this type in any place."""

    title, parameter_name = "type", "type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name) for name in events.TYPES]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Event]) -> QuerySet[Event]:
        return events.rows_with(queryset, kind) if (kind := self.value()) else queryset


@admin.register(Event)
class EventAdmin(NumberedInDialog):
    """Rows of events, each of which holds several: the list names them, and a row's page shows their times and data."""

    list_display = ("seq", "dialog", "types", "created_at")
    list_filter = (TypeFilter,)
    fields = ("dialog", "content")
    readonly_fields = ("content",)

    @admin.display(description="events")
    def types(self, row: Event) -> str:
        return ", ".join(f"{event.seq} {event.type}" for event in events.events_in(row))

    @admin.display(description="events")
    def content(self, row: Event) -> SafeString:
        lines = (
            (event.seq, json_shapes.when(event.created_at), event.type, json.dumps(event.data, ensure_ascii=False))
            for event in events.events_in(row)
        )
        return format_html_join("", "<div>{} · {} · <b>{}</b> {}</div>", lines)


admin.site.register(Round, OfDialog, list_display=("number", "dialog", "cause", "created_at"), list_filter=("cause",))


admin.site.register(Reminder, OfDialog, list_display=("id", "dialog", "position", "__str__", "created_at"))


admin.site.register(Artifact, OfDialog, list_display=("__str__", "dialog", "tool_call_id", "created_at"))


class WithoutBytes(OfDialog):
    """Rows whose ``content`` is bytes: an image, or the vectors of a turn."""

    exclude = ("content",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).defer("content")


@admin.register(Attachment)
class AttachmentAdmin(WithoutBytes):
    list_display = ("name", "dialog", "media_type", "created_at")
    list_filter = (("media_type", NewestValues),)


admin.site.register(
    Client,
    OfDialog,
    list_display=("dialog", "key", "required_tool"),
    list_select_related=("dialog", "key"),
    ordering=("dialog",),
)


# Turns that a person pinned for recall, or dismissed.
admin.site.register(RecallChoice, OfDialog, list_display=("dialog", "seq", "choice"), list_filter=("choice",))


admin.site.register(TurnVectors, WithoutBytes, list_display=("dialog", "seq"))


# Instructions, tools and settings that requests have in common, each stored once.
admin.site.register(RequestPart, RecordAdmin, list_display=("digest", "dialog"), list_select_related=("dialog",))


# Models that refused to be made to call a tool, for which the runtime asks without force.
admin.site.register(
    ForcingRefusal, RecordAdmin, list_display=("provider", "model", "refused_at"), list_filter=("provider",)
)
