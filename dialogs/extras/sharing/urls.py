from django.urls import path

from dialogs.extras.sharing import views

urlpatterns = [
    path("d/<uuid:dialog_id>/sharing/", views.show, name="sharing"),
    path("shared/<str:token>/", views.show_shared, name="shared"),
    path("shared/<str:token>/images/<slug:sha256>/", views.image, name="shared-image"),
]
