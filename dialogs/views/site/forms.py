"""Forms of the site: limits, settings for everybody, and model servers."""

from functools import cache
from typing import Any, cast
from urllib.parse import urlsplit

from django import forms
from django.utils.module_loading import import_string
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from dialogs.extension import installed_extensions
from dialogs.models import Agent, SiteSettings
from dialogs.views.forms import MOST_TOKENS, Share, WholeNumber
from dominds.llm.providers.kinds import KINDS


class LimitsForm(forms.Form):
    """Limits of ``context.yaml``. Only types and ranges are checked here; saving applies the rules of the file."""

    min_limit = WholeNumber(
        1, MOST_TOKENS, "tokens", label=_("Global minimum"), help_text=_("tokens; no limit lies below it")
    )
    default_limit = WholeNumber(
        1, MOST_TOKENS, "tokens", label=_("Default limit"), help_text=_("tokens, for agents without their own")
    )
    warning_threshold = Share(
        label=_("Warning threshold"), help_text=_("share of the limit above which a context is shortened")
    )
    recovery_mode = forms.ChoiceField(
        label=_("When nothing helps"),
        choices=[
            ("fresh_start", _("start fresh from a handover")),
            ("truncate", _("keep what is important and newest")),
            ("error", _("fail the message with the cause")),
        ],
    )


class LlmLimitForm(forms.Form):
    """The limit of one LLM type. An empty row is left out."""

    type = forms.CharField(label=_("LLM type"), max_length=40, required=False)
    limit = WholeNumber(1, MOST_TOKENS, "tokens", label=_("Limit"), required=False)
    follow_default = forms.BooleanField(label=_("Follow default"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():  # columns have headings, which do not name a control
            field.widget.attrs["aria-label"] = field.label

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        limit = given.get("limit")
        if limit and not given.get("type"):
            sentence = gettext("found a limit of {limit:,} tokens without one. Name the type, or empty the row.")
            self.add_error("type", sentence.format(limit=limit))
        if given.get("type") and not limit and not given.get("follow_default") and "limit" not in self.errors:
            sentence = gettext("found none for {type}. Give one, or tick “Follow default”.")
            self.add_error("limit", sentence.format(type=given["type"]))
        return given


class LlmLimitRows(forms.BaseFormSet):  # type: ignore[type-arg]
    def clean(self) -> None:
        types = [row.cleaned_data.get("type") for row in self.forms if row.is_valid() and row not in self.deleted_forms]
        if doubled := sorted({name for name in types if name and types.count(name) > 1}):
            sentence = gettext("There are two rows of {types}. Keep one of them.")
            raise forms.ValidationError(sentence.format(types=", ".join(doubled)))


LlmLimits = forms.formset_factory(LlmLimitForm, LlmLimitRows, extra=1, can_delete=True, max_num=100)


class SiteForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = SiteSettings
        fields: tuple[str, ...] = ("pruning_agent", "write_titles", "keep_discarded_outputs")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = cast("forms.ModelChoiceField[Agent]", self.fields["pruning_agent"])
        field.empty_label = _("Same as current agent")
        field.queryset = Agent.objects.filter(enabled=True)


@cache
def site_form() -> type[SiteForm]:
    """Return the form of the settings for everybody, with the extensions' fields."""
    parts = [import_string(extension.site_form) for extension in installed_extensions() if extension.site_form]
    metas = [part.Meta for part in (SiteForm, *parts)]
    meta = type("Meta", tuple(reversed(metas)), {"fields": [name for each in metas for name in each.fields]})
    return type("WholeSiteForm", (*parts, SiteForm), {"Meta": meta})


class KeyField(forms.CharField):
    """A field for a server's key, which is shown again after a mistake in another field."""

    def __init__(self, **options: Any) -> None:
        widget = forms.PasswordInput({"autocomplete": "off"}, render_value=True)
        super().__init__(max_length=500, required=False, widget=widget, **options)

    def validate(self, value: Any) -> None:
        super().validate(value)
        if not value.isascii() or not value.isprintable():
            raise forms.ValidationError(gettext("It holds characters that no key has."))


class ServerForm(forms.Form):
    """A model server at an address that somebody types."""

    address = forms.CharField(
        max_length=500,
        widget=forms.TextInput(
            {
                "placeholder": "https://api.example.com/v1",
                "inputmode": "url",
                "list": "known-addresses",
                "autocomplete": "off",
                "spellcheck": "false",
            }
        ),
    )
    key = KeyField()
    kind = forms.ChoiceField(
        choices=[
            ("", _("Known by its address")),
            *((kind.name, _(kind.label)) for kind in KINDS.values() if kind.label),
        ],
        required=False,
    )

    def clean_address(self) -> str:
        """Refuse a text that is no address. Whether an address may be called is decided at the call."""
        address = str(self.cleaned_data["address"])
        try:
            _ = urlsplit(address).port
        except ValueError as error:
            raise forms.ValidationError(gettext("It is no web address: {error}.").format(error=error)) from error
        return address
