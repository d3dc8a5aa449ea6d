from django.urls import path

from dialogs.extras.operations import views

urlpatterns = [
    path("ops/", views.dashboard, name="ops"),
    path("statistics/", views.statistics, name="statistics"),
    path("ops/tasks/<int:task_id>/finish/", views.finish_task, name="finish-task"),
    path("ops/<uuid:dialog_id>/<slug:action>/", views.intervene, name="intervene"),
]
