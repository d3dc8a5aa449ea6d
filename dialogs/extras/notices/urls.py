from django.urls import path

from dialogs.extras.notices import question_links, views

urlpatterns = [
    path("settings/push/", views.subscribe_push, name="subscribe-push"),
    path("settings/push/<int:subscription_id>/remove/", views.remove_push, name="remove-push"),
    path("push-worker.js", views.push_worker, name="push-worker"),
    path("q4h/<uuid:question_id>/by-mail/", question_links.show, name="question-by-mail"),
    path("q4h/<uuid:question_id>/by-mail/answer/", question_links.answer, name="answer-by-mail"),
    path("q4h/<uuid:question_id>/by-mail/cancel/", question_links.cancel, name="cancel-by-mail"),
    path("q4h/<uuid:question_id>/by-mail/resolve/", question_links.resolve, name="resolve-by-mail"),
    path("q4h/<uuid:question_id>/by-mail/<str:token>/", question_links.open_link, name="question-link"),
]
