"""The former addresses of the timeline and of its calls, which redirect to the context."""

from django.urls import path

from dialogs.views.context import led_to_context

urlpatterns = [
    path("d/<uuid:dialog_id>/timeline/", led_to_context, name="timeline"),
    path("d/<uuid:dialog_id>/calls/<int:generation_id>/", led_to_context, name="call"),
    path("d/<uuid:dialog_id>/calls/<int:generation_id>/compare/", led_to_context, name="compare"),
]
