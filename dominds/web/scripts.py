"""A bundle of the pages' scripts, so that a first visit makes one request instead of twenty.

The modules stay separate files under ``static/js``. In the bundle each becomes a function, which runs once, when
another module first needs it.
"""

import re
from functools import cache
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dominds.web.build import BUILD
from dominds.web.compression import compress_file
from dominds.web.static import FOR_EVER

OUTSIDE = re.compile(r"before_paint\.js|phrases\..*")  # not bundled, since they run before the page is drawn
FIRST = "app.js"  # the script of every page
_FROM = re.compile(r'^import\s*\{([^}]*)\}\s*from\s*"\./([\w.]+)";$', re.MULTILINE)
_WHOLE = re.compile(r'^import\s*"\./([\w.]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
_REMARK = re.compile(r"^[ \t]*(?://.*|/\*\*.*\*/)\n", re.MULTILINE)  # a comment that is a whole line
_LEFT = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


class NotBundled(Exception):
    """Raised for a module with an import or export in a form that is not supported."""


def bundle(modules: dict[str, str]) -> str:
    """Join modules into one script. Raises ``NotBundled``.

    The script runs FIRST, and then the modules that the page names in ``<meta name="module" content="...">``.
    """
    parts = ",\n".join(
        f"{_quote(name)}: (need, give) => {{\n{_as_function(name, text)}}}" for name, text in modules.items()
    )
    return (
        "const made = {};\n"
        "const need = (name) => {\n"
        "  if (!made[name]) modules[name](need, (values) => (made[name] = values));\n"
        "  return made[name];\n"
        "};\n"
        f"const modules = {{\n{parts},\n}};\n"
        f"need({_quote(FIRST)});\n"
        'for (const { content } of document.querySelectorAll("meta[name=module]")) need(content);\n'
    )


def _as_function(name: str, text: str) -> str:
    text, names = _REMARK.sub("", text), _EXPORT.findall(text)
    text = _FROM.sub(lambda found: f"const {{ {_rename(found[1])} }} = need({_quote(found[2])});", text)
    text = _EXPORT.sub("", _WHOLE.sub(lambda found: f"need({_quote(found[1])});", text))
    if left := _LEFT.search(text):
        raise NotBundled(f"{name}: expected import {{...}} from or export of a function, class or const: {left[0]}")
    return f"{text.rstrip()}\ngive({{ {', '.join(names)} }});\n"


def _rename(names: str) -> str:
    """Turn ``a as b`` of an import into ``a: b`` of a destructuring pattern."""
    return re.sub(r"\b(\w+) as (\w+)\b", r"\1: \2", " ".join(names.split()))


def _quote(name: str) -> str:
    return f'"{name}"'


@cache
def page_scripts() -> str:
    found = sorted(path for folder in settings.STATICFILES_DIRS for path in (Path(folder) / "js").glob("*.js"))
    return bundle({path.name: path.read_text() for path in found if not OUTSIDE.fullmatch(path.name)})


@require_safe
def serve(request: HttpRequest) -> HttpResponse:
    """Serve the bundle. Browsers cache it forever if the address contains the build."""
    text = bundle_now() if settings.DEBUG else page_scripts()
    response = HttpResponse(text, content_type="text/javascript; charset=utf-8")
    if request.GET.get("v") == BUILD and not settings.DEBUG:
        response["Cache-Control"] = FOR_EVER
    compress_file(request, response)
    return response


def bundle_now() -> str:
    """Bundle the files anew, for developers who change them."""
    page_scripts.cache_clear()
    return page_scripts()
