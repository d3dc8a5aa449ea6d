"""The laws of every extension as tests that its author runs. Needs pytest, and Django set up.

In a test module: ``class TestMine(ExtensionConformance): app = "my_extension"``. See ``docs/extensions.md``.
"""

import re
from dataclasses import fields
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, ClassVar

from django import forms
from django.apps import apps
from django.template.loader import get_template
from django.urls import URLPattern, URLResolver
from django.utils.module_loading import import_string
from ninja import Router

from dialogs.agents.fields import FIELDS as AGENT_FIELDS
from dialogs.extension import PLACES, Extension, installed_extensions, load
from dialogs.models import SiteSettings

HEARD = {  # the hooks of an extension, with the number of arguments that each is called with
    "sweep": 0,
    "tidy": 0,
    "question_opened": 1,
    "question_closed": 1,
    "level_changed": 2,
    "rewritten": 2,
    "dialogs_deleted": 1,
    "state_changed": 1,
    "stopped": 1,
    "shared": 1,
    "dialogs_restored": 1,
    "dialog_erased": 1,
    "spending": 2,
    "traced_below": 1,
    "exported": 1,
}


class ExtensionConformance:
    """The laws of an extension. A subclass sets ``app``, the dotted name of its app."""

    app: ClassVar[str]

    @property
    def extension(self) -> Extension:
        return load(self.app)

    def test_its_name_and_summary_are_fit_to_be_listed(self) -> None:
        assert re.fullmatch(r"[a-z][a-z0-9_]{0,30}", self.extension.name)
        assert self.extension.summary.endswith(".") and "\n" not in self.extension.summary

    def test_it_is_an_app_of_its_own_name(self) -> None:
        config = next(config for config in apps.get_app_configs() if config.name == self.app)
        assert config.label == self.extension.name

    def test_no_other_extension_has_its_name(self) -> None:
        assert [extension.name for extension in installed_extensions()].count(self.extension.name) == 1

    def test_its_templates_are_there_and_its_variables_are_functions(self) -> None:
        for piece in self.extension.pieces:
            assert piece.place in PLACES
            get_template(piece.template)
            assert not piece.variables or callable(import_string(piece.variables))

    def test_its_addresses_are_there_and_nobody_else_has_their_names(self) -> None:
        for module in filter(None, (self.extension.programs, self.extension.pages)):
            patterns = import_module(module).urlpatterns
            assert patterns
            others = {
                name for other in installed_extensions() if other.name != self.extension.name for name in _names(other)
            }
            assert not _names_in(patterns) & others

    def test_its_routers_are_those_of_the_api(self) -> None:
        for name in self.extension.routers:
            assert isinstance(import_string(name), Router)

    def test_its_fields_of_the_site_belong_to_the_site(self) -> None:
        if self.extension.site_form:
            form = import_string(self.extension.site_form)
            assert issubclass(form, forms.ModelForm) and form.Meta.model is SiteSettings

    def test_its_tools_are_a_function_and_its_fields_have_no_others_names(self) -> None:
        if self.extension.tools:
            signature(import_string(self.extension.tools)).bind(object(), None)
        others = (other for other in installed_extensions() if other.name != self.extension.name)
        taken = {*AGENT_FIELDS, *(name for other in others for name in other.agent_fields)}
        assert not self.extension.agent_fields.keys() & taken

    def test_what_it_hears_takes_what_it_is_called_with(self) -> None:
        known = {field.name for field in fields(Extension)}
        for name, values in HEARD.items():
            assert name in known
            signature(getattr(self.extension, name)).bind(*[object()] * values)
            assert not _needs_more(getattr(self.extension, name), values)

    def test_it_knows_no_other_extension(self) -> None:
        own = re.escape(self.app)
        foreign = re.compile(rf"^\s*(?:from|import) (?!{own}\b)(dialogs\.extras\.\w+)", re.M)
        folder = Path(import_module(self.app).__path__[0])
        found = {path.name: foreign.findall(path.read_text()) for path in folder.rglob("*.py")}
        assert not {name: modules for name, modules in found.items() if modules}


def _needs_more(function: Any, values: int) -> bool:
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    parameters = signature(function).parameters.values()
    needed = [parameter for parameter in parameters if parameter.default is Parameter.empty and parameter.kind in kinds]
    return len(needed) > values


def _names(extension: Extension) -> set[str]:
    modules = filter(None, (extension.programs, extension.pages))
    return {name for module in modules for name in _names_in(import_module(module).urlpatterns)}


def _names_in(patterns: list[URLPattern | URLResolver]) -> set[str]:
    names: set[str] = set()
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            names |= _names_in(pattern.url_patterns)
        elif pattern.name:
            names.add(pattern.name)
    return names
