"""The tag ``{% pieces "place" %}``, a builtin of all templates, which shows the extensions' additions to a page."""

from django import template
from django.utils.html import format_html_join
from django.utils.module_loading import import_string
from django.utils.safestring import SafeString

from dialogs.extension import pieces_at

register = template.Library()


@register.simple_tag(takes_context=True)
def pieces(context: template.Context, place: str) -> SafeString:
    """Render what the extensions show at this place, each with the variables around it."""
    parts = []
    for piece in pieces_at(place):
        shown = context.template.engine.get_template(piece.template)  # type: ignore[union-attr]
        variables = import_string(piece.variables)(context["request"]) if piece.variables else {}
        with context.push(**variables):
            parts.append(shown.render(context))
    return format_html_join("", "{}", ((part,) for part in parts))
