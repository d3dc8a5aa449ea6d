"""Rows: their columns, and predicates on them. Services elsewhere in ``dialogs`` change them."""

from dialogs.models.agents import Agent, ConnectedProvider, ForcingRefusal, ToolServer
from dialogs.models.clients import ApiKey, Client, EmbeddingUse
from dialogs.models.context_state import ContextState
from dialogs.models.conversation import Dialog, Reminder, Turn
from dialogs.models.deliveries import Delivery, PushSubscription
from dialogs.models.drive import Drive
from dialogs.models.generations import CallTotals, Generation
from dialogs.models.history import Event, RequestPart, Round
from dialogs.models.people import Identity
from dialogs.models.questions import Question
from dialogs.models.settings import PersonSettings, PromptTemplate, SiteSettings
from dialogs.models.turn_extras import Artifact, Attachment, RecallChoice, TurnVectors

__all__ = [
    "Agent",
    "ApiKey",
    "Artifact",
    "Attachment",
    "CallTotals",
    "Client",
    "ConnectedProvider",
    "ContextState",
    "Delivery",
    "Dialog",
    "Drive",
    "EmbeddingUse",
    "Event",
    "ForcingRefusal",
    "Generation",
    "Identity",
    "PersonSettings",
    "PromptTemplate",
    "PushSubscription",
    "Question",
    "RecallChoice",
    "Reminder",
    "RequestPart",
    "Round",
    "SiteSettings",
    "ToolServer",
    "Turn",
    "TurnVectors",
]
