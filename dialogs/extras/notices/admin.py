"""Sent notices and subscribed browsers in the admin."""

from django.contrib import admin

from dialogs.models import Delivery, PushSubscription
from dominds.readonly_admin import RecordAdmin


@admin.register(PushSubscription)
class PushSubscriptionAdmin(RecordAdmin):
    list_display = ("__str__", "user", "created_at")
    list_select_related = ("user",)
    fields = ("user", "browser", "created_at")


@admin.register(Delivery)
class DeliveryAdmin(RecordAdmin):
    list_display = ("__str__", "question", "person", "tries", "due_at", "sent_at", "created_at")
    list_filter = ("channel", "event")
    list_select_related = ("question", "person")
    ordering = ("-pk",)
