from django.urls import path

from dialogs.extras.sso import views

urlpatterns = [
    path("login/provider/", views.begin_sign_in, name="sign-in"),
    path("login/provider/<int:number>/", views.begin_sign_in, name="sign-in"),
    path("login/callback/", views.end_sign_in, name="sign-in-callback"),
    path("login/callback/<int:number>/", views.end_sign_in, name="sign-in-callback"),
    path("settings/sign-ins/<int:identity_id>/unlink/", views.unlink, name="unlink"),
]
