from django.apps import AppConfig


class V1Config(AppConfig):
    name = "dialogs.extras.v1"
    verbose_name = "/v1 and /mcp"
