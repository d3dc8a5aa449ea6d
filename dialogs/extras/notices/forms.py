"""The fields for notices in the form of the settings for everybody."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from dialogs.extras.notices import webhook
from dialogs.models import SiteSettings
from dialogs.views.forms import WholeNumber


class NoticesForm(forms.ModelForm):  # type: ignore[type-arg]
    webhook_url = forms.URLField(required=False, assume_scheme="https", label=_("Webhook"), max_length=200)
    webhook_secret = forms.CharField(
        required=False,
        max_length=200,
        label=_("Webhook secret"),
        widget=forms.PasswordInput({"autocomplete": "off"}),
    )
    unsigned = forms.BooleanField(required=False, label=_("Forget the secret"))
    question_deadline_minutes = WholeNumber(
        1, 1_000_000, "minutes", required=False, label=_("Answers are due within (minutes)")
    )

    class Meta:
        model = SiteSettings
        fields = ("webhook_url", "question_deadline_minutes", "escalation_address")
        labels = {"escalation_address": _("Overdue questions also to")}
        widgets = {
            "escalation_address": forms.Textarea(
                {
                    "rows": 4,
                    "spellcheck": "false",
                    "autocomplete": "off",
                    "placeholder": "lead@example.org 30\nboss@example.org",
                    "class": "addresses",
                }
            )
        }

    def save(self, commit: bool = True) -> Any:
        if secret := self.cleaned_data["webhook_secret"]:
            webhook.change_secret(self.instance, secret)
        elif self.cleaned_data["unsigned"]:
            self.instance.sealed_webhook_secret = self.instance.sealed_former_webhook_secret = ""
        return super().save(commit)
