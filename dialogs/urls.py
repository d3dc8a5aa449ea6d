from django.urls import include, path

from dialogs.views import (
    accounts,
    context,
    dialogs,
    limits,
    messages,
    models,
    ops,
    post_message,
    questions,
    reminders,
    rewrites,
    settings,
)

urlpatterns = [
    # People
    path("setup/", accounts.setup, name="setup"),
    path("login/", accounts.Login.as_view(), name="login"),
    path("logout/", accounts.Logout.as_view(), name="logout"),
    path("settings/", settings.show, name="settings"),
    path("settings/look/", settings.save_look, name="save-look"),
    path("settings/context-display/", settings.save_context_display, name="save-context-display"),
    path("settings/site/", settings.save_site, name="save-site"),
    path("settings/password/", settings.change_password, name="change-password"),
    path("settings/limits/", limits.show, name="limits"),
    path("settings/keys/", settings.create_key, name="create-key"),
    path("settings/keys/<int:key_id>/revoke/", settings.revoke_key, name="revoke-key"),
    # Dialogs
    path("", dialogs.index, name="dialogs"),
    path("d/new/", dialogs.create, name="create-dialog"),
    path("d/<uuid:dialog_id>/", dialogs.show, name="dialog"),
    path("d/<uuid:dialog_id>/older", dialogs.older, name="older"),
    path("d/<uuid:dialog_id>/frames", dialogs.frames, name="frames"),
    path("d/<uuid:dialog_id>/messages/", post_message, name="post-message"),
    path("d/<uuid:dialog_id>/messages/<int:seq>/remove/", messages.remove_queued, name="remove-queued"),
    path("d/<uuid:dialog_id>/stop/", messages.stop, name="stop"),
    path("d/<uuid:dialog_id>/retry/", messages.retry, name="retry"),
    path("d/<uuid:dialog_id>/close/", messages.close, name="close"),
    path("d/<uuid:dialog_id>/reminders/", reminders.add, name="add-reminder"),
    path("d/<uuid:dialog_id>/reminders/<int:reminder_id>/", reminders.update, name="update-reminder"),
    path("d/<uuid:dialog_id>/reminders/<int:reminder_id>/delete/", reminders.delete, name="delete-reminder"),
    # Its context
    path("d/<uuid:dialog_id>/health/", context.health, name="health"),
    path("d/<uuid:dialog_id>/turn/<int:seq>/usage/", context.usage, name="usage"),
    path("d/<uuid:dialog_id>/export.md", context.export_markdown, name="export-markdown"),
    path("d/<uuid:dialog_id>/export.json", context.export_json, name="export-json"),
    path("d/<uuid:dialog_id>/context/", rewrites.context, name="context"),
    path("d/<uuid:dialog_id>/context/clear/", rewrites.clear, name="clear"),
    path("d/<uuid:dialog_id>/context/milestone/", rewrites.complete_milestone, name="complete-milestone"),
    path("d/<uuid:dialog_id>/context/<slug:kind>/", rewrites.request, name="rewrite"),
    path("d/<uuid:dialog_id>/archive/", rewrites.archive, name="archive"),
    path("d/<uuid:dialog_id>/archive/<int:run_id>/", rewrites.archived_run, name="archived-run"),
    path("d/<uuid:dialog_id>/archive/<int:run_id>/undo/", rewrites.undo, name="undo"),
    # Q4H
    path("q4h/", questions.index, name="questions"),
    path("q4h/<uuid:question_id>/", questions.show, name="question"),
    path("q4h/<uuid:question_id>/answer/", questions.answer, name="answer"),
    path("q4h/<uuid:question_id>/cancel/", questions.cancel, name="cancel"),
    path("q4h/<uuid:question_id>/resolve/", questions.resolve, name="resolve"),
    # Models
    path("models/", models.index, name="models"),
    path("models/<str:provider>/<path:model>/", models.show, name="model"),
    # Operators
    path("ops/", ops.dashboard, name="ops"),
    path("ops/tasks/<int:task_id>/finish/", ops.finish_task, name="finish-task"),
    path("ops/<uuid:dialog_id>/<slug:action>/", ops.intervene, name="intervene"),
    # Programs
    path("api/", include("dialogs.api.urls")),
    path("v1/", include("dialogs.openai_api.urls")),
]
