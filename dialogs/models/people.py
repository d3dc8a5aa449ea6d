"""Accounts of people at an OpenID provider."""

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models


class Identity(models.Model):
    """An account at an OpenID provider, by which a person signs in.

    Issuer and subject identify it for good. Its name and mail address there may pass to other people.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    groups = models.ManyToManyField(
        Group, blank=True, editable=False, related_name="+", help_text="which the person is in for the provider's word"
    )

    class Meta:
        verbose_name_plural = "identities"
        constraints = [models.UniqueConstraint(fields=["issuer", "subject"], name="identity_unique")]

    def __str__(self) -> str:
        return f"{self.subject} at {self.issuer}"
