"""Settings of people and of the site, and people's templates."""

import re
from uuid import uuid4
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator, validate_email
from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from dialogs.models.agents import Agent
from dominds import outbound_http

MOST_ASKED = 10  # people who are asked, one after another, about one question


class PersonSettings(models.Model):
    """One person's choices for the pages."""

    class Detail(models.TextChoices):
        MINIMAL = "minimal", _("Minimal")
        NORMAL = "normal", _("Normal")
        DETAILED = "detailed", _("Detailed")

    class Theme(models.TextChoices):
        SYSTEM = "system"
        LIGHT = "light"
        DARK = "dark"

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="dominds_settings")
    theme = models.CharField(max_length=8, choices=Theme.choices, default=Theme.SYSTEM)
    language = models.CharField(
        max_length=12, blank=True, default="", db_default="", help_text="of the pages; empty: what the browser prefers"
    )
    seen_language = models.CharField(
        max_length=12,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="of the page that was shown last: what mails and push notifications are in where none was chosen",
    )
    zone = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="of times and days, such as Europe/Berlin; empty: that of the browser",
    )
    seen_zone = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="of the browser that was used last: what holds where none was chosen",
    )
    notifications = models.BooleanField(default=False)
    question_mails = models.BooleanField(default=True, db_default=True)
    show_breaking_progress = models.BooleanField(default=True)
    progress_detail = models.CharField(max_length=8, choices=Detail.choices, default=Detail.NORMAL)
    auto_hide_seconds = models.PositiveSmallIntegerField(default=3)
    highlight_p1 = models.BooleanField(default=True)
    recall = models.BooleanField(default=True, db_default=True)
    monthly_budget_usd = models.DecimalField(
        max_digits=18,
        decimal_places=10,
        null=True,
        blank=True,
        help_text="what this person's dialogs may cost in a calendar month; empty: no budget",
    )

    class Meta:
        verbose_name_plural = "person settings"
        constraints = [
            models.CheckConstraint(name="auto_hide_1_to_10", condition=models.Q(auto_hide_seconds__range=(1, 10)))
        ]

    def __str__(self) -> str:
        return f"Settings of {self.user}"

    @property
    def zone_in_force(self) -> ZoneInfo:
        """Return the chosen time zone, or else that of the browser used last."""
        return zone_named(self.zone or self.seen_zone)


class PromptTemplate(models.Model):
    """A text that a person begins messages with, called by its name after a slash."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="prompt_templates")
    name = models.CharField(
        max_length=40, validators=[RegexValidator(r"^[\w-]+$", "Use letters, digits, - and _ only, without spaces.")]
    )
    text = models.TextField(max_length=20_000)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="one_template_per_name")]

    def __str__(self) -> str:
        return f"/{self.name}"


class SiteSettings(models.Model):
    """Settings for everybody, in at most one row. ``current()`` returns that row or the defaults."""

    singleton = models.BooleanField(default=True, unique=True, editable=False)
    pruning_agent = models.ForeignKey(
        Agent,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="empty: same as current agent",
    )
    write_titles = models.BooleanField(
        default=True, db_default=True, help_text="a model call names a dialog that a person began on the page"
    )
    keep_discarded_outputs = models.BooleanField(default=True, help_text="in a log of their own, for 7 days")
    generation = models.CharField(
        max_length=32,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="of the database: another one after each restore, so that cursors of before are known as such",
    )
    webhook_url = models.URLField(blank=True, help_text="called for questions, levels and rewrites")
    sealed_webhook_secret = models.TextField(
        blank=True, default="", db_default="", editable=False, help_text="encrypted; empty: calls are not signed"
    )
    sealed_former_webhook_secret = models.TextField(
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="encrypted; signs beside the new one for a day after a change",
    )
    webhook_secret_changed_at = models.DateTimeField(null=True, editable=False)
    sealed_push_key = models.TextField(
        blank=True, default="", db_default="", editable=False, help_text="encrypted; signs push notifications"
    )
    question_deadline_minutes = models.PositiveIntegerField(
        null=True, blank=True, help_text="a question that is open for longer is escalated; empty: none is"
    )
    escalation_address = models.TextField(
        blank=True,
        default="",
        db_default="",
        max_length=4_000,
        help_text="who gets a mail about overdue questions, beside the dialog's owner: a line each, in the order in "
        "which they are asked, an address and the minutes until the next one is asked",
    )

    class Meta:
        verbose_name_plural = "site settings"

    def __str__(self) -> str:
        return "Site settings"

    def clean(self) -> None:
        if self.webhook_url:
            try:
                outbound_http.check(self.webhook_url, allow_private=settings.PRIVATE_WEBHOOKS)
            except outbound_http.Refused as refused:
                raise ValidationError({"webhook_url": str(refused)}) from refused
        lines = [line.split() for line in re.split(r"[\n,;]", self.escalation_address) if line.strip()]
        if problem := _problem_with(lines):
            raise ValidationError({"escalation_address": problem})
        self.escalation_address = "\n".join(" ".join(line) for line in lines)

    @property
    def asked_next(self) -> list[tuple[str, int]]:
        """Return the addresses for overdue questions, in order, each with the minutes until the next one is asked."""
        lines = (line.split() for line in self.escalation_address.splitlines())
        usual = self.question_deadline_minutes or 0
        return [(address, int(minutes[0]) if minutes else usual) for address, *minutes in lines]

    @classmethod
    def begin_generation(cls, using: str) -> None:
        """Note that the database was restored, so that cursors from before are known to be void."""
        cls.objects.using(using).update_or_create(singleton=True, defaults={"generation": uuid4().hex})

    @classmethod
    def current(cls) -> "SiteSettings":
        return cls.objects.first() or cls()


def zone_named(name: str) -> ZoneInfo:
    """Return the time zone of this name, or UTC if this machine knows none."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return ZoneInfo("UTC")


def _problem_with(lines: list[list[str]]) -> str:
    """Return the problem with the lines of ``escalation_address``, or an empty text."""
    if len(lines) > MOST_ASKED:
        return gettext("At most {most} people are asked one after another.").format(most=MOST_ASKED)
    for address, *minutes in lines:
        try:
            validate_email(address)
        except ValidationError:
            return gettext("“{address}” is no mail address.").format(address=address)
        if minutes and not (len(minutes) == 1 and re.fullmatch(r"[1-9][0-9]{0,5}", minutes[0])):
            return gettext("Behind {address} stand minutes, a whole number from 1 to 999,999, or nothing.").format(
                address=address
            )
    return ""
