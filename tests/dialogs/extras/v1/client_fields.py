"""What becomes of each field that the official clients can send: honoured, refused by its name, or harmless."""

from dataclasses import replace

from dialogs.extras.v1.messages.request import chat_request_of
from dialogs.extras.v1.parsing import chat_request
from tests.dialogs.extras.v1.chat_fields import chat_message_kinds, chat_part_kinds
from tests.dialogs.extras.v1.message_fields import in_beta, message_block_kinds, message_kinds, message_tool_kinds
from tests.dialogs.extras.v1.response_fields import (
    of_response,
    response_item_kinds,
    response_kinds,
    response_part_kinds,
    response_shell_kinds,
)

PROTOCOLS = (
    (chat_request, (*chat_message_kinds(), *chat_part_kinds())),
    (of_response, (*response_kinds(), *response_item_kinds(), *response_part_kinds(), *response_shell_kinds())),
    (chat_request_of, tuple(map(in_beta, (*message_kinds(), *message_block_kinds(), *message_tool_kinds())))),
)
KINDS = {kind.type.__name__: replace(kind, reader=reader) for reader, kinds in PROTOCOLS for kind in kinds}
# Objects in fields that are read, whose own fields need no judgement, and why.
_WHOLE = "read whole, and checked by those whose tests are about it"
_THINKING = "what the model thought is in the dialog, and comes back unread"
_THEIRS = "programs send OpenAI's own tools along with theirs; refused where there are no others"
_LOOKED_UP = "what was found stands in the answer behind it, which is read"
_SEEN_TO = "the runtime prunes results and keeps no thinking of older turns, in its own way"
UNREAD: dict[str, str] = {
    **dict.fromkeys(("ResponseFormatText", "ResponseFormatJSONSchema", "ResponseFormatJSONObject"), _WHOLE),
    **dict.fromkeys(("ResponseFormatTextJSONSchemaConfigParam", "JSONOutputFormatParam"), _WHOLE),
    **dict.fromkeys(("BetaJSONOutputFormatParam", "InputSchemaTyped", "MetadataParam", "BetaMetadataParam"), _WHOLE),
    **dict.fromkeys(("ChatCompletionStreamOptionsParam", "ChatCompletionMessageFunctionToolCallParam"), _WHOLE),
    **dict.fromkeys(("ChatCompletionContentPartRefusalParam", "ResponseOutputRefusalParam"), _WHOLE),
    **dict.fromkeys(("Text", "Grammar", "PlainTextSourceParam", "BetaPlainTextSourceParam"), _WHOLE),
    **dict.fromkeys(("Base64ImageSourceParam", "BetaBase64ImageSourceParam"), _WHOLE),
    **dict.fromkeys(("ToolReferenceBlockParam", "BetaToolReferenceBlockParam"), _WHOLE),
    **dict.fromkeys(("ThinkingConfigDisabledParam", "BetaThinkingConfigDisabledParam"), _WHOLE),
    **dict.fromkeys(("ThinkingConfigBetweenToolsParam", "BetaThinkingConfigBetweenToolsParam"), _WHOLE),
    **dict.fromkeys(("BetaCompact20260112EditParam", "BetaCompactionBlockParam"), _WHOLE),
    "BetaSystemMessageOutputConfigParam": _WHOLE,
    "ResponseCompactionItemParamParam": _WHOLE,
    **dict.fromkeys(("ThinkingBlockParam", "RedactedThinkingBlockParam", "ResponseReasoningItemParam"), _THINKING),
    **dict.fromkeys(("BetaThinkingBlockParam", "BetaRedactedThinkingBlockParam"), _THINKING),
    **dict.fromkeys(("ResponseFunctionWebSearchParam", "ToolSearchCall"), _LOOKED_UP),
    "ResponseToolSearchOutputItemParamParam": _LOOKED_UP,
    **dict.fromkeys(("BetaClearToolUses20250919EditParam", "BetaClearThinking20251015EditParam"), _SEEN_TO),
    **dict.fromkeys(("FileSearchToolParam", "ComputerToolParam", "ComputerUsePreviewToolParam"), _THEIRS),
    **dict.fromkeys(("WebSearchToolParam", "WebSearchPreviewToolParam", "Mcp", "CodeInterpreter"), _THEIRS),
    **dict.fromkeys(("ProgrammaticToolCalling", "ImageGeneration", "ToolSearchToolParam"), _THEIRS),
    **dict.fromkeys(("LocalShell", "LocalEnvironmentParam", "ShellCallAction", "LocalShellCallAction"), _WHOLE),
    **dict.fromkeys(("ApplyPatchCallOperationCreateFile", "ApplyPatchCallOperationDeleteFile"), _WHOLE),
    **dict.fromkeys(("ApplyPatchCallOperationUpdateFile", "ResponseFunctionShellCallOutputContentParam"), _WHOLE),
}
