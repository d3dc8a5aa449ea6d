"""The addresses below ``/v1/``."""

from django.urls import path, re_path

from dialogs.extras.v1 import views
from dialogs.extras.v1.gemini import views as gemini

urlpatterns = [
    path("models", views.list_models, name="v1-models"),
    re_path(rf"^models/(?P<model>.+):(?P<method>{'|'.join(gemini.METHODS)})$", gemini.use_model, name="v1-use"),
    path("models/<path:model>", views.get_model, name="v1-model"),
    path("chat/completions", views.chat_completions, name="v1-chat-completions"),
    path("messages", views.create_message, name="v1-messages"),
    path("messages/count_tokens", views.count_message_tokens, name="v1-count-tokens"),
    path("responses", views.create_response, name="v1-responses"),
    path("responses/compact", views.compact_response, name="v1-compact"),
    path("responses/input_tokens", views.count_input_tokens, name="v1-input-tokens"),
    path("responses/<str:response_id>", views.get_response, name="v1-response"),
    path("responses/<str:response_id>/cancel", views.cancel_response, name="v1-cancel"),
    path("embeddings", views.create_embeddings, name="v1-embeddings"),
    re_path(r"", views.unknown),
]
