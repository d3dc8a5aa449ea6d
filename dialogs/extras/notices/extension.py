from dialogs.extension import Extension, Piece
from dialogs.extras.notices import deliveries

EXTENSION = Extension(
    name="notices",
    summary="Mails, push notifications and a webhook about questions that wait, levels and rewrites.",
    pages="dialogs.extras.notices.urls",
    pieces=(
        Piece("settings-appearance", "accounts/_push.html", "dialogs.extras.notices.views.push_settings"),
        Piece("settings-site", "accounts/_notices.html"),
    ),
    site_form="dialogs.extras.notices.forms.NoticesForm",
    sweep=deliveries.sweep,
    tidy=deliveries.delete_old,
    question_opened=deliveries.question_opened,
    question_closed=deliveries.question_closed,
    level_changed=deliveries.level_changed,
    rewritten=deliveries.rewritten,
    dialogs_deleted=deliveries.drop_of,
)
