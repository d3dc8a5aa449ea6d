from django.apps import AppConfig


class SsoConfig(AppConfig):
    name = "dialogs.extras.sso"
    verbose_name = "Sign-in at OpenID providers"
