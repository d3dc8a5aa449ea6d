"""This browser's push subscription, which a signed cookie names.

A person who logs out, or lets somebody else log in, is no longer notified in this browser. A session that ends by
itself ends no notifications, since they are for people who are away.
"""

from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse

from dialogs.models import PushSubscription

SALT = "dialogs.push"
COOKIE_SECONDS = 400 * 24 * 3600  # browsers keep none for longer


def remember(answer: HttpResponse, subscription: PushSubscription) -> None:
    answer.set_signed_cookie(
        _cookie(),
        str(subscription.pk),
        salt=SALT,
        max_age=COOKIE_SECONDS,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def subscription_of(request: HttpRequest) -> PushSubscription | None:
    """Return the subscription of the browser behind this request, whoever is logged in."""
    number = request.get_signed_cookie(_cookie(), default="", salt=SALT)
    return PushSubscription.objects.filter(pk=number).first() if number else None


def _cookie() -> str:
    return f"{settings.SESSION_COOKIE_NAME}_push"  # its suffix keeps two instances on one host apart


@receiver(user_logged_out)
def forget(sender: Any, request: HttpRequest, **kwargs: Any) -> None:
    if result := subscription_of(request):
        result.delete()


@receiver(user_logged_in)
def forget_others(sender: Any, request: HttpRequest, user: User, **kwargs: Any) -> None:
    if (result := subscription_of(request)) and result.user_id != user.pk:
        result.delete()
