from django.urls import path

from dialogs.extras.teams import views

urlpatterns = [
    path("d/<uuid:dialog_id>/team/panel/", views.panel, name="team-panel"),
    path("d/<uuid:dialog_id>/team/task/", views.task, name="task-document"),
    path("d/<uuid:dialog_id>/team/<uuid:side_id>/end/", views.end, name="end-side-dialog"),
]
