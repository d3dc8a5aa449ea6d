from django.urls import path

from dialogs.extras.imports import views

urlpatterns = [
    path("import/", views.show, name="import"),
    path("import/progress/", views.progress, name="import-progress"),
]
