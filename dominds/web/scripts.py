"""The modules of the pages' scripts as one file, so that a first visit makes one request in place of twenty.

Each module stays a file of its own under ``static/js``. Here it becomes a function that runs once, when the first other
module needs it.
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

OUTSIDE = re.compile(r"before_paint\.js|phrases\..*")  # run at once, before the page is drawn
FIRST = "app.js"  # the script of every page
_FROM = re.compile(r'^import\s*\{([^}]*)\}\s*from\s*"\./([\w.]+)";$', re.MULTILINE)
_WHOLE = re.compile(r'^import\s*"\./([\w.]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
_REMARK = re.compile(r"^[ \t]*(?://.*|/\*\*.*\*/)\n", re.MULTILINE)  # a line of its own
_LEFT = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


class NotBundled(Exception):
    """Raised for a module in a form that is not known here."""


def bundle(modules: dict[str, str]) -> str:
    """Join modules into one script. Raises ``NotBundled``.

    The script runs the module named first, and those that the page names in ``<meta name="module" content="...">``.
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
    """Turn ``a as b`` into the ``a: b`` of a pattern."""
    return re.sub(r"\b(\w+) as (\w+)\b", r"\1: \2", " ".join(names.split()))


def _quote(name: str) -> str:
    return f'"{name}"'


@cache
def page_scripts() -> str:
    found = sorted(path for folder in settings.STATICFILES_DIRS for path in (Path(folder) / "js").glob("*.js"))
    return bundle({path.name: path.read_text() for path in found if not OUTSIDE.fullmatch(path.name)})


@require_safe
def serve(request: HttpRequest) -> HttpResponse:
    """Serve the scripts of the pages. Browsers keep an address that contains the build for ever."""
    text = bundle_now() if settings.DEBUG else page_scripts()
    response = HttpResponse(text, content_type="text/javascript; charset=utf-8")
    if request.GET.get("v") == BUILD and not settings.DEBUG:
        response["Cache-Control"] = FOR_EVER
    compress_file(request, response)
    return response


def bundle_now() -> str:
    """Join the files as they are now, for developers who change them."""
    page_scripts.cache_clear()
    return page_scripts()
