import functools
from collections.abc import Iterator
from typing import Any, cast
from uuid import UUID
from zoneinfo import available_timezones

from django import forms
from django.conf import settings
from django.contrib.auth.forms import BaseUserCreationForm
from django.contrib.auth.models import User
from django.http import QueryDict
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from dialogs.accounts.names import check_name
from dialogs.actions import exits, questions
from dialogs.errors import Invalid
from dialogs.models import ApiKey, Dialog, PersonSettings, Question
from dialogs.models.settings import zone_named
from dialogs.pages.dialog_page import STATES
from dominds.visible_text import is_blank

MOST_SELECTED = 100
MOST_TOKENS = 2_000_000_000  # an integer column takes 2,147,483,647


def problems_of(*given: Any) -> Iterator[str]:
    """Yield a sentence for each problem of forms and formsets. It begins with the label of the field."""
    for form in given:
        if isinstance(form, forms.BaseFormSet):
            yield from (str(message) for message in form.non_form_errors())
            yield from problems_of(*form.forms)
            continue
        for name, messages in form.errors.items():
            label = form[name].label if name in form.fields else ""
            yield from (f"{label}: {message}" if label else str(message) for message in messages)


def clean(form: forms.Form) -> dict[str, Any]:
    """Return the form's values. Raises ``Invalid`` with a sentence for each problem."""
    if not form.is_valid():
        raise Invalid(" ".join(problems_of(form)))
    return form.cleaned_data


class Explained(forms.Field):
    """A number field whose refusal names what was found and what is allowed."""

    @property
    def allowed(self) -> str:
        raise NotImplementedError  # each kind of number says what it takes

    def clean(self, value: Any) -> Any:
        try:
            return super().clean(value)
        except forms.ValidationError as error:
            result = gettext("nothing") if value in self.empty_values else f"“{str(value)[:40]}”"
            sentence = gettext("found {value}. {allowed}").format(value=result, allowed=self.allowed)
            raise forms.ValidationError(sentence) from error


class WholeNumber(Explained, forms.IntegerField):
    def __init__(self, least: int, most: int, unit: str, **options: Any) -> None:
        super().__init__(min_value=least, max_value=most, **options)
        self._bounds = least, most, unit

    @property
    def allowed(self) -> str:
        least, most, unit = self._bounds
        sentence = gettext("Give a whole number of {unit} from {least:,} to {most:,}.")
        return sentence.format(unit=gettext(unit), least=least, most=most)


class Share(Explained, forms.FloatField):
    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=0.01, max_value=1, **options)

    @property
    def allowed(self) -> str:
        return gettext("Give a number above 0 and up to 1, such as 0.8.")


class Dollars(Explained, forms.DecimalField):
    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "min_value": 0, "max_value": exits.MOST_USD, "decimal_places": 2})

    @property
    def allowed(self) -> str:
        return gettext("Give an amount in USD from 0 to {most:,}, such as 2.50.").format(most=exits.MOST_USD)


class SetupForm(BaseUserCreationForm):  # type: ignore[type-arg]
    """The first administrator."""

    class Meta:
        model = User
        fields = ("username",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].widget.attrs |= {"autofocus": True, "autocomplete": "username"}

    def clean_username(self) -> str:
        name: str = self.cleaned_data["username"]
        check_name(name, self.instance)
        return name


class NewDialogForm(forms.Form):
    """The choices beside a first message. ``model`` is ``provider/model``.

    The message's text is no field: it is stored or refused exactly as it was typed.
    """

    agent = forms.CharField(max_length=64)
    model = forms.CharField(max_length=201, required=False)
    client_message_id = forms.CharField(max_length=120, required=False)


class ListFilter(forms.Form):
    q = forms.CharField(max_length=200, required=False)
    state = forms.ChoiceField(
        choices=[
            ("", _("any state")),
            *((state.value, label) for state, label in STATES.items()),
            ("archived", _("archived")),
            ("deleted", _("deleted")),
        ],
        required=False,
    )
    agent = forms.CharField(max_length=64, required=False)
    origin = forms.ChoiceField(choices=[("", _("people and programs")), *Dialog.Origin.choices], required=False)
    whose = forms.ChoiceField(choices=[("", _("mine and my groups'")), ("all", _("everybody's"))], required=False)
    owner = forms.CharField(max_length=150, required=False)
    folder = forms.CharField(max_length=60, required=False)
    all = forms.BooleanField(required=False)
    until = forms.CharField(max_length=40, required=False)
    page = forms.IntegerField(min_value=1, required=False)


class SelectionForm(forms.Form):
    """The ticked dialogs, at most a page of the list, and one of the bar's buttons."""

    action = forms.ChoiceField(
        choices=[(name, name) for name in ("archive", "restore", "export", "delete", "bring_back")]
    )
    dialog = forms.TypedMultipleChoiceField(coerce=UUID)

    def __init__(self, content: QueryDict) -> None:
        super().__init__(content)
        ticked = content.getlist("dialog")
        cast(forms.ChoiceField, self.fields["dialog"]).choices = [(value, value) for value in ticked[:MOST_SELECTED]]


class FolderForm(forms.Form):
    """An action on all dialogs of a folder. ``rename`` takes the new ``name``; ``share`` takes a ``group``, or none to
    end the sharing.
    """

    action = forms.ChoiceField(choices=[(name, name) for name in ("rename", "share", "export", "archive", "remove")])
    folder = forms.CharField(max_length=60, strip=False)
    name = forms.CharField(max_length=500, required=False)
    group = forms.CharField(max_length=150, required=False, strip=False)


class MessageForm(forms.Form):
    """The choices beside a message. Its text is no field, as in ``NewDialogForm``."""

    client_message_id = forms.CharField(max_length=120, required=False)


class TurnForm(forms.Form):
    """The turn that an action is about. It is not part of the address, so a dialog has one address for each action."""

    seq = WholeNumber(1, MOST_TOKENS, "turns", label=_("Turn"))
    request_id = forms.CharField(max_length=120, required=False)


class RegenerateForm(forms.Form):
    """The model of another answer, as ``provider/model``; empty for the dialog's own."""

    model = forms.CharField(max_length=201, required=False)


class EditForm(forms.Form):
    text = forms.CharField(strip=False, required=False)


class ReminderForm(forms.Form):
    text = forms.CharField(strip=False)
    position = forms.IntegerField(min_value=0, required=False)


class PackageForm(forms.Form):
    reminder_content = forms.CharField(label=_("Hand-over note"), strip=False, required=False)

    def clean_reminder_content(self) -> str:
        package: str = self.cleaned_data["reminder_content"]
        if is_blank(package):
            raise forms.ValidationError(gettext("It is blank. Write what the agent is to go on from."))
        return package


class AnswerForm(forms.Form):
    text = forms.CharField(strip=False, required=False)


class ExitForm(forms.Form):
    """The exits of a question that suspends its dialog, with their inputs. The service checks them."""

    action = forms.ChoiceField()

    def __init__(self, question: Question, content: QueryDict | None = None) -> None:
        super().__init__(content)
        self.question = question
        known = exits.exits_for(question.kind)
        self.offered = [way for way in known if way.available(question)]
        names = [(way.name, way.label) for way in known]
        cast(forms.ChoiceField, self.fields["action"]).choices = names
        for way in known:
            for field in way.fields:
                self.fields[field.name] = _control(field, question)

    @property
    def ways(self) -> list[dict[str, Any]]:
        """Return the offered exits in the form that the templates show."""
        chosen = self["action"].value() or next(
            (way.name for way in self.offered if way.recommended), self.offered[0].name
        )
        return [
            {
                "exit": way,
                "is_chosen": way.name == chosen,
                "controls": [self[field.name] for field in way.fields],
                "preview": way.preview(self.question),
            }
            for way in self.offered
        ]

    @property
    def problem(self) -> str:
        """Say in one line why the form is not valid."""
        if "action" in self.errors:
            return gettext("Choose one of the ways out.")
        return " ".join(str(message) for messages in self.errors.values() for message in messages)

    def in_words(self, refusal: str) -> str:
        """Return a refusal with the labels that people see in place of the names that programs send."""
        for field in exits.exit_named(self.cleaned_data["action"]).fields:
            if isinstance(field, exits.TextField):
                refusal = refusal.replace(field.name, f"“{gettext(field.label)}”")
        return refusal

    def options(self) -> dict[str, str]:
        """Return the options for the chosen exit."""
        options: dict[str, str] = {}
        for field in exits.exit_named(self.cleaned_data["action"]).fields:
            options |= field.read(self.cleaned_data[field.name])
        return options


def _control(field: exits.Field, question: Question) -> forms.CharField:
    label = {"aria-label": gettext(field.label)}
    if isinstance(field, exits.ChoiceField):
        choices = forms.Select(attrs=label, choices=field.choices(question))
        return forms.CharField(required=False, widget=choices)
    text: forms.Widget = forms.Textarea(attrs={**label, "rows": field.lines, "cols": 80})
    if field.lines == 1:
        text = forms.TextInput(attrs={**label, "inputmode": field.keyboard, "autocomplete": "off"})
    return forms.CharField(required=False, strip=False, initial=field.initial(question), widget=text)


class QuestionFilter(forms.Form):
    tab = forms.ChoiceField(
        choices=[(name, name) for name in ("open", "mine", "answered", "resolved", "cancelled")], required=False
    )
    kind = forms.ChoiceField(
        choices=[("", _("any kind")), *Question.Kind.choices],
        required=False,
    )
    agent = forms.CharField(max_length=64, required=False)
    age = forms.ChoiceField(choices=[("", _("any age")), *questions.AGES], required=False)


class ApiKeyForm(forms.Form):
    name = forms.CharField(max_length=80, required=False, label=_("What it is for"))
    scope = forms.ChoiceField(choices=ApiKey.Scope.choices, required=False, label=_("May be used for"))
    days = WholeNumber(1, 3_650, "days", required=False, label=_("Holds for (days)"))
    keep_days = WholeNumber(1, 3_650, "days", required=False, label=_("Keep its dialogs for (days)"))
    budget_usd = Dollars(required=False, label=_("Budget a month (USD)"))


@functools.cache  # the list is read from hundreds of files
def zones() -> dict[str, str]:
    """Map the IANA time zones that are named after a place to that place, without aliases like ``US/Eastern``."""
    names = sorted(name for name in available_timezones() if name.partition("/")[0] in AREAS)
    return {"UTC": "UTC"} | {name: name.partition("/")[2].replace("_", " ") for name in names}


def _zone_of(typed: str) -> str:
    """Return the time zone with this name or this city, or an empty text if there is none."""
    wanted = "/" + typed.replace("_", " ").casefold()
    named = (name for name in zones() if f"/{name}".replace("_", " ").casefold().endswith(wanted))
    return next(named, typed if str(zone_named(typed)) == typed else "")


AREAS = frozenset("Africa America Antarctica Asia Atlantic Australia Europe Indian Pacific".split())


class AppearanceForm(forms.ModelForm):  # type: ignore[type-arg]
    language = forms.ChoiceField(
        choices=[("", _("As the browser says")), *settings.LANGUAGES], required=False, label=_("Language")
    )
    zone = forms.CharField(
        required=False,
        label=_("Time zone"),
        widget=forms.TextInput(
            {"list": "zones", "autocomplete": "off", "spellcheck": "false", "placeholder": _("As the browser says")}
        ),
    )
    email = forms.EmailField(
        required=False, label=_("Mail address"), widget=forms.EmailInput({"autocomplete": "email"})
    )

    class Meta:
        model = PersonSettings
        fields = ("theme", "language", "zone", "notifications", "question_mails")
        widgets = {"theme": forms.RadioSelect}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].initial = self.instance.user.email

    def clean_zone(self) -> str:
        typed: str = self.cleaned_data["zone"]
        zone = _zone_of(typed) if typed else ""
        if typed and not zone:
            raise forms.ValidationError(_("No time zone has this name. Type a city, and choose from the list."))
        return zone

    def save(self, commit: bool = True) -> Any:
        user = self.instance.user
        if user.email != self.cleaned_data["email"]:
            user.email = self.cleaned_data["email"]
            user.save(update_fields=["email"])
        return super().save(commit)


class ContextDisplayForm(forms.ModelForm):  # type: ignore[type-arg]
    """A person's choices about how the state of the context is shown."""

    auto_hide_seconds = WholeNumber(
        1, 10, "seconds", label=_("Auto-hide delay"), widget=forms.NumberInput(attrs={"type": "range", "step": 1})
    )

    class Meta:
        model = PersonSettings
        fields = ("show_breaking_progress", "progress_detail", "auto_hide_seconds", "highlight_p1", "recall")
        labels = {
            "show_breaking_progress": _("Show context breaking progress"),
            "progress_detail": _("Progress detail level"),
            "highlight_p1": _("Highlight P1 protection"),
        }
