"""Warm-up of web processes, with code that they load as soon as they run (see ``dominds.web.startup``)."""

from pathlib import Path

from django.conf import settings
from django.template.loader import get_template

from dialogs.context.config import current_config
from dialogs.context.limits import models_in_use
from remediation.tokens.counting import counter_for


def warm_up_pages() -> None:
    """Load the model catalog, the vocabularies for estimates, and the pieces of a page, which takes half a second."""
    configured = current_config().tokenizer
    for model in models_in_use():
        for tokenizer in {model.tokenizer, configured}:
            counter_for(model.model_id, tokenizer).count("Loaded.")
    for path in sorted(Path(settings.RESOURCES, "templates", "dialogs").glob("_*.html")):
        get_template(f"dialogs/{path.name}")
