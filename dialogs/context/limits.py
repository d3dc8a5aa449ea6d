"""The model of a dialog, its present limits, and the compaction policy that follows from them."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.db import connection

from dialogs.context.connected import connected
from dialogs.models import Agent, Dialog
from dialogs.store import json_shapes
from dominds.llm.catalog.catalog import Catalog, ModelInfo, UnknownModel, current_catalog
from dominds.llm.connect import has_key, key_of
from dominds.llm.models.learned import with_learned
from dominds.llm.models.model import LimitUnavailable, LoadedLimit
from dominds.llm.provider import AuthFailed
from dominds.llm.providers.server_window import of_any_age
from dominds.llm.usage import Usage
from health.levels import AWAITING_REPORT, Judgement, Level, Thresholds, UnknownReason, judge, stated_thresholds
from remediation.policies.none import POLICY as NONE
from remediation.policies.registry import Choice, choice_for
from remediation.policies.retention import POLICY as RETENTION


def catalog() -> Catalog:
    return current_catalog(settings.MINDS_DIR, connected())


def model_of(subject: Dialog | Agent) -> ModelInfo:
    """Return the subject's model from the catalog, with traits learned from refusals. Raises ``UnknownModel``."""
    if isinstance(subject, Dialog):
        return with_learned(catalog().model(subject.provider_id, subject.model_id))
    return with_learned(catalog().model(subject.provider, subject.model))


def models_in_use() -> set[ModelInfo]:
    """Return the models of the enabled agents, as far as the catalog knows them."""
    named = Agent.objects.filter(enabled=True).values_list("provider", "model")
    return {catalog().models[pair] for pair in named if pair in catalog().models}


def loaded_limit(model: ModelInfo) -> LoadedLimit | LimitUnavailable | None:
    """Ask the server for the window that the model runs with; answers are cached for two seconds. Returns None if the
    server cannot be asked, or is a vendor's and the catalog states the window.

    In a transaction, for which others may wait, an answer of any age is taken.
    """
    ask = model.kind.loaded_window
    if ask is None or not _is_asked(model):
        return None
    try:
        with _any_age_in_transaction():
            return ask(model.base_url, model.model_id, key_of(model))
    except AuthFailed as error:
        return LimitUnavailable(str(error))


def _is_asked(model: ModelInfo) -> bool:
    return model.kind.loaded_window is not None and (model.kind.is_local or model.limit[0] is None)


def _any_age_in_transaction() -> AbstractContextManager[None]:
    return of_any_age() if connection.in_atomic_block else nullcontext()


def as_served(model: ModelInfo) -> ModelInfo:
    """Return the model with or without images as its server reports, if the catalog does not state its modalities.

    Answers are cached as in ``loaded_limit``.
    """
    if model.kind.sees is None or model.states_modalities:
        return model
    try:
        with _any_age_in_transaction():
            sees_images = model.kind.sees(model.base_url, model.model_id, key_of(model))
    except AuthFailed:
        return model
    if sees_images is None:
        return model
    return replace(model, modalities=("text", "image") if sees_images else ("text",))


def counted_by_server(model: ModelInfo, text: str) -> int | None:
    """Return the tokens of ``text`` by the loaded model's own tokenizer; None where the server cannot tell."""
    if model.kind.count_tokens is None:
        return None
    try:
        return model.kind.count_tokens(model.base_url, model.model_id, text, key_of(model))
    except AuthFailed:
        return None


def thresholds_of_model(model: ModelInfo) -> Thresholds:
    """Return the thresholds under the server's window, or the catalog's if the model may be used with that."""
    return thresholds_under(model, loaded_limit(model))


def thresholds_under(model: ModelInfo, loaded: LoadedLimit | LimitUnavailable | None) -> Thresholds:
    """Return the thresholds under the window that the server reported, which has precedence over the catalog's."""
    stated = stated_thresholds(model)
    match loaded:
        case LoadedLimit(tokens, source):
            return replace(stated, context_limit=tokens, limit_source=source, input_limit=None)
        case LimitUnavailable() if model.kind.needs_limit:
            return replace(stated, context_limit=None, limit_source="", input_limit=None)
    return stated


def unusable_under(model: ModelInfo, loaded: LoadedLimit | LimitUnavailable | None) -> str:
    """Tell people why the server's report forbids a generation with the model; empty when it does not."""
    if model.unusable or not model.kind.needs_limit:
        return model.unusable
    match loaded:
        case LimitUnavailable(reason):
            return reason
        case None if model.limit[0] is None:
            unsaid = "declares LM Studio's kind and no context_length. Give it one in the server's configuration."
            return f"{model.model_id} {unsaid}"
    return ""


def thresholds_of(dialog: Dialog) -> Thresholds:
    try:
        return thresholds_of_model(model_of(dialog))
    except UnknownModel:
        return Thresholds(context_limit=None)


def unusable_reason(subject: Dialog | Agent) -> str:
    """Tell people why no generation can start with this model now; empty when one can."""
    try:
        model = model_of(subject)
    except UnknownModel as error:
        return str(error)
    asks_server = model.kind.needs_limit and not model.unusable
    reason = unusable_under(model, loaded_limit(model) if asks_server else None)
    # On one machine the pages have the environment of the worker; elsewhere only workers need the keys.
    return reason or (missing_key(subject) if settings.EMBEDDED else "")


def missing_key(subject: Dialog | Agent) -> str:
    """Tell people that the key of the model's provider is missing; empty if it is there, or none is needed."""
    try:
        key_of(model_of(subject))
    except (AuthFailed, UnknownModel) as error:
        return str(error) if isinstance(error, AuthFailed) else ""
    return ""


def larger_models(dialog: Dialog) -> list[tuple[str, int]]:
    """Return models that may have a larger window than the dialog's, as ``provider/model`` with the window in tokens,
    smallest first. Those whose window only their server knows come last, with 0.
    """
    now = thresholds_of(dialog).context_limit or 0
    known = [
        (f"{model.provider_id}/{model.model_id}", 0 if _is_asked(model) else model.limit[0] or 0)
        for model in _others(dialog)
        if _is_asked(model) or (model.limit[0] or 0) > now
    ]
    return sorted(known, key=lambda entry: (not entry[1], entry[1], entry[0]))


def other_models(dialog: Dialog) -> list[str]:
    """Return usable models besides the dialog's, as ``provider/model``."""
    return sorted(f"{model.provider_id}/{model.model_id}" for model in _others(dialog))


def _others(dialog: Dialog) -> list[ModelInfo]:
    """Return the models that may answer in place of the dialog's. A script answers no conversation but its own."""
    own = catalog().models.get((dialog.provider_id, dialog.model_id))
    takes_scripts = own is None or not own.kind.is_server
    return [model for model in offered_models() if model != own and (model.kind.is_server or takes_scripts)]


def offered_models() -> list[ModelInfo]:
    """Return the models that can be chosen, sorted by provider. They are usable and have their keys, and if their
    server is local, somebody has named it.

    No server is asked.
    """
    known = catalog()
    offered = [
        model
        for model in known.models.values()
        if not model.unusable and has_key(model) and (not model.kind.is_local or model.provider_id in known.named)
    ]
    return sorted(offered, key=lambda model: (model.provider_id, model.model_id))


def policy_of(subject: Dialog | Agent) -> Choice:
    """Return the compaction policy in force, by the choice of dialog or agent and by the model's family."""
    try:
        return policy_for(subject, model_of(subject).kind.family)
    except UnknownModel:
        return policy_for(subject, "")


def policy_for(subject: Dialog | Agent, family: str) -> Choice:
    """Choose a policy. An agent that only rewrites help, such as a proxy, has retention unless a policy is named."""
    agent, named = (
        (subject.agent, subject.chosen_policy) if isinstance(subject, Dialog) else (subject, subject.context_policy)
    )
    choice = choice_for(named, family)
    return Choice(RETENTION) if agent.kind.needs_rewrites and not named and choice.policy is NONE else choice


def judgement_of(dialog: Dialog, thresholds: Thresholds | None = None) -> Judgement:
    """Judge the last report by the present limits; the level is unknown while there is no report."""
    thresholds = thresholds or thresholds_of(dialog)
    if dialog.report == Dialog.Report.AWAITING:
        return AWAITING_REPORT
    if dialog.report == Dialog.Report.UNAVAILABLE or dialog.prompt_tokens is None:
        return Judgement(Level.UNKNOWN, UnknownReason.USAGE_UNAVAILABLE)
    usage = Usage(dialog.prompt_tokens, dialog.completion_tokens or 0, dialog.total_tokens)
    return judge(usage, thresholds, truncation_suspected=dialog.report == Dialog.Report.SUSPECTED)


def health_of(dialog: Dialog, thresholds: Thresholds | None = None) -> dict[str, Any]:
    """Return the data of the health indicator, as JSON."""
    thresholds = thresholds or thresholds_of(dialog)
    return json_shapes.health(dialog, judgement_of(dialog, thresholds), thresholds)
