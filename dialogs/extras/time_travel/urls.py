from django.urls import path

from dialogs.extras.time_travel import views

urlpatterns = [
    path("d/<uuid:dialog_id>/timeline/", views.timeline, name="timeline"),
    path("d/<uuid:dialog_id>/calls/<int:generation_id>/", views.call, name="call"),
    path("d/<uuid:dialog_id>/calls/<int:generation_id>/compare/", views.call, name="compare"),
]
