"""Translation of the runtime's own sentences, which rows hold in English, into the language of a page.

Questions, failures and notices are stored as text, for programs and logs. Pages recognise the sentences in it by their
forms. The rest was written by somebody else, mostly a provider, and stays as it is, marked as English.
"""

import re
from functools import cache

from django.utils import translation
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from dominds import unreachable

# A name in braces stands for what the runtime filled in: one word, or, for `words` and `reason`, any text.
FORMS = (
    # why a dialog is suspended
    "{number} forced attempts to clear the mind failed.",
    "Last reported prompt: {number} tokens.",
    "Message {number} ({size} characters) still waits for its answer.",
    "It is most of the request: edit it to shorten it, or choose a model with a larger context.",
    "Message {number} alone ({size} characters) does not fit: the context stayed critical in a fresh round with it.",
    "The forced clear was refused:",
    "The forced clear itself is too long:",
    "It said the same twice in a row.",
    "This dialog has cost {spent}, and the budget is {budget}.",
    "The dialogs of its owner have cost {spent} this month, and the budget is {budget}.",
    "{number} of its calls have no known price and are not counted.",
    # before a tool runs
    "Allow {tool} to run with these arguments? Any other answer refuses.",
    # why a message was not answered
    "This message was given up. Try again, or send another.",
    "The agent made {number} generations for this message without an answer.",
    "The agent made the same calls {number} times and got the same results, although it was told so: {words}.",
    "Say what it is to do instead, or try again.",
    "Given up after {number} tries.",
    "The worker was lost {number} times in a row while it worked on this message. Try again.",
    "There is no model of '{provider}' named '{name}'.",
    "There is no provider named '{name}'.",
    "Near it: {words}. Choose a known one",
    "Choose a known one, or add it to the server's configuration.",
    ", or add it to the server's configuration.",
    "{model} declares LM Studio's kind and no context_length. Give it one in the server's configuration.",
    "LM Studio reports no context length for '{model}' (loaded_context_length is {words}). Load the model again or "
    "update LM Studio, or choose another model.",
    "LM Studio lists '{model}' but has not loaded it. Load the model there, then try again.",
    "LM Studio does not know the model '{model}' (it lists: {words}). Download or rename it.",
    "The server does not serve the model '{model}' (it lists: {words}).",
    "The server's list names no window of '{model}'. State it on the model's page, or in the server's configuration.",
    "llama.cpp reports no n_ctx at /props. Update it, or state the window here.",
    "Keep within {number} tokens.",
    "Try in this order: {words}.",
    "The provider '{provider}' needs a key, and the environment variable {variable} is not set. Set it and start "
    "again, type the key under Models, or choose another model.",
    "{model} is not called for now: its last {number} calls failed.",
    "{host} did not accept a connection within {seconds} s.",
    "No connection to {host}: {reason}. Check that the server runs, and its address (under Models, or in the "
    "server's configuration).",
    "The connection to {host} failed: {reason}.",
    "The connection to {host} failed during the answer: {reason}.",
    "{host} broke off its answer: {reason}.",
    "{host} closed its answer without saying that it was finished.",
    "The answer took longer than {seconds} seconds and was cut off.",
    "The provider's stream ended without its explicit end.",
    "Check its address (under Models, or in the server's configuration), which mostly ends in /v1.",
    "Check the provider's key: the one typed under Models, or that of the server's configuration.",
    "Check the account, or choose another model.",
    "Check the model under Models, or in the server's configuration.",
    "Choose a model that sees images, or go on without them.",
    "The key may not use this: give it access, or choose another model.",
    "The request has to become shorter, or the account's quota larger.",
    "The output_length of the model in the server's configuration is to be what it allows.",
    "The request has to become shorter, or the model's window larger.",
    "Less output has to be asked for, or the request become shorter.",
    "Choose another model, or set supports_tool_choice to false for it in the server's configuration.",
    "It is sent again with these as the user's.",
    "It is sent again without what the model thought before.",
    "{host} did not answer in time (HTTP {number}):",
    "{host} did not answer in time:",
    "{host} could not read what its model wrote (HTTP {number}):",
    "{host} could not read what its model wrote:",
    "{host} is overloaded or not available (HTTP {number}):",
    "{host} is overloaded or not available:",
    "{host} failed with HTTP {number}:",
    "{host} failed:",
    "{host} refused the request with HTTP {number}:",
    "{host} refused the request:",
    # notices beside answers; the first three only in rows of earlier versions
    "The answer was cut off where the output that was asked for ended.",
    "output_length of its model, or max_tokens of the agent, allows more.",
    "The model spent all of its output on thinking, and said nothing. A lower effort leaves some for an answer;",
    "The answer was cut off at the longest output that is allowed.",
    "The settings of its agent, its model or its server say how long it may be.",
    "The model spent all of its output on thinking, and said nothing. A lower effort leaves some for an answer.",
    "The model's context window is full.",
    "The call of {name} was cut off where the output ended, and was not run.",
    "The answer was cut off: the model's context window is full.",
    "The model, or a filter of its provider, refused to answer.",
    "The provider paused before the answer was whole. Send a message to go on.",
    "The provider shortened the conversation, and ended there. Send a message to go on.",
    "The model ended without a word.",
    "Compacting conversation history...",
    "Context compacted, continuing...",
    "Nothing was compacted, continuing...",
    # why a context was rewritten
    "asked for by hand",
    "a milestone was reached",
    "utilisation over 80 %",
    "est. {number} of {limit} tokens",
    "est. {number} tokens, over {limit}",
    "A priority-1 agent went over its limit.",
    "{number} context warnings within an hour.",
    "The agent ran in circles, so it was started afresh.",
    "The context was started afresh or truncated.",
    "est. over {number} % of the limit",
    "over the est. {limit} tokens from which on it is rewritten",
    "a critical report",
    "the answer filled {number} % of the limit",
    "the provider refused the request as too long",
    "more than 2 over-hits in an hour",
    # why a rewrite would change nothing
    "The context could not be made smaller:",
    "Nothing to prune: the messages take est. {number} of the {limit} tokens that they may take.",
    "Nothing to prune: all messages must stay, est. {number} tokens.",
    "Nothing to manage: est. {number} of {limit} tokens are taken, and pruning begins above {size} %.",
    "Nothing to summarise: there are no more than {number} messages.",
    "A fresh start would remove nothing: every unit must stay.",
    "The rewrite would not be smaller: est. {number} → {limit} tokens.",
    "The rewrite would gain too little to be worth what it loses: est. {number} → {limit} tokens, less than a tenth.",
    "What must stay is too large even with a summary of all else: est. {number} tokens, and {limit} are allowed.",
    "The end of the cut answer leaves est. {number} of {limit} tokens.",
    "The system prompt (est. {number} tokens) and the",
    "messages that must stay (est. {number} tokens) leave no room for a summary within the {limit} tokens for "
    "messages.",
    "newest and pinned messages (est. {number} tokens) alone exceed the budget of {limit} tokens for messages.",
    "Shorten them, raise the limit or choose a larger model.",
    "Instructions, tools and reminders take est. {number} tokens beside the messages.",
    "Instructions, tools and reminders take est. {number} of {limit} tokens, the newest message and what has to stay "
    "est. {size}.",
    "Instructions, tools and reminders take est. {number} of {limit} tokens, the newest message and what has to stay "
    "est. {size}, and {budget} are kept for the answer.",
    "The newest message and what has to stay take est. {number} of {limit} tokens, instructions, tools and reminders "
    "est. {size}.",
    "The newest message and what has to stay take est. {number} of {limit} tokens, instructions, tools and reminders "
    "est. {size}, and {budget} are kept for the answer.",
    "No rewrite makes them smaller.",
    "Shorten the instructions, offer fewer tools, or choose a model with a larger window.",
    "Send less at once, clear the agent's mind, or choose a model with a larger window.",
    "it was a call to shorten texts; what it was shown is not kept with the call, only its hash",
    "No answer from {words} at {host}: {reason}. Start its server, or correct its address (under Models, or in the "
    "server's configuration).",
    # what the page that connects servers found
    "No connection to {host}: {reason}.",
    "{host} did not answer within {seconds} s.",
    "{host} did not answer in time.",
    "{host} answered, but not with a list of models. Check the address and the kind.",
    "{host} answered, but lists no model that chats.",
    # what is refused
    "There is no such thing, or it is not yours.",
    "The message is empty. Write something to send.",
    "The message has {size} bytes; at most {limit} are accepted. Shorten or split it.",
    "The dialog is closed. Open a new one.",
    "The dialog is closed; its context can no longer change.",
    "The dialog is closed; its reminders can no longer be changed.",
    "The dialog is suspended: a question must be resolved first, about a critical context, a budget or a refusal.",
    "The dialog is suspended: take one of the exits of its question.",
    "The dialog waits for an answer to its question. Answer or cancel it first.",
    "{number} of your dialogs are running; {limit} are allowed at once.",
    "{number} messages in the last minute; {limit} are allowed. Wait a moment.",
    "Message {number} is not waiting any more, so it cannot be taken back.",
    "The dialog is {state}; retry is for one that has stopped or failed.",
    "The dialog is {state}. Choose another model when it has finished, or stop it.",
    "The dialog is {state}. Branch off when it has finished, or stop it.",
    "The dialog is {state}. Stop or close it, then delete it.",
    "The last message was answered; send a new one instead.",
    "The title is blank. Write what the dialog is about.",
    "The title has {size} characters; at most {limit} are allowed. Shorten it.",
    "A rewrite is under way already:",
    "The dialog is generating. Undo when it has finished.",
    "Only the newest rewrite of the current round can be undone. Undo later ones first.",
    "Only the newest clear can be undone. Undo later rewrites of its round first.",
    "This can be undone for an hour, and no longer. Nothing was changed.",
    "The reminder is blank. Write what the agent should not forget.",
    "There are {number} reminders, the most allowed. Delete or merge some first.",
    "This reminder has est. {number} tokens and the others hold est. {size}; together at most {limit} are accepted. "
    "Shorten it, or delete one.",
    "The answer is empty. Write one, or cancel the question.",
    "The result is empty. Write what the tool would have answered.",
    "An answer takes words alone: queue files as a message.",
    "“{words}” is empty. Leave it out.",
    "“{words}” is neither a PNG, JPEG, WebP or GIF image nor a PDF, Word, Excel or PowerPoint document nor text in "
    "UTF-8. Nothing else can be attached.",
    "You have a folder “{words}” already. Choose another name.",
    "The new name is blank. Write one, or remove the folder.",
    "A tool call of this turn waits for its result. Fork at an earlier turn, or later.",
    "A dialog has at most {number} pinned and dismissed turns. Take one back first.",
    "This link is no longer valid. Ask your administrator for another.",
    "Type the name as it stands there. Nothing was erased.",
    "You cannot switch yourself off. Another administrator can.",
    "You cannot end your own administration. Another administrator can.",
    "You cannot erase yourself. Another administrator can.",
    "Type the key again: the stored one is only sent to {host}.",
    "{host} does not list the model “{words}”. Choose one that it lists.",
    "The image was not fetched: its server answered {number}.",
    "The image was not fetched: its server sent something else.",
    "The message is too large for {model}: it has est. {number} tokens, and there is room for {size}.",
    "The model takes {limit}, of which instructions and reminders take est. {number}, tools est. {size}, and an answer "
    "at least {free}.",
    "The model takes {limit}, of which instructions and reminders take est. {number}, and an answer at least {free}.",
    "Send it in parts, or choose a model with a larger context.",
    "Delete reminders, shorten the instructions, or choose a model with a larger context.",
    "The message that waited came along, and is answered after this one.",
    "The {number} messages that waited came along, and are answered after this one.",
    "There is no such dialog.",
    "There is no such rewrite.",
    "This rewrite was undone already.",
    "This answer names no such image.",
    "This is somebody else's dialog. To act in it takes the permission act_in_all_dialogs.",
    "Only its owner pins a dialog.",
    "Only its owner puts a dialog into a folder.",
    "Only its owner deletes a dialog.",
    "Only its owner shares a dialog.",
    "The folder's name has {size} characters; at most {limit} are allowed. Shorten it.",
    "“{words}” holds {number} dialogs; at most {limit} are shared at once.",
    "You have no folder “{words}”, or nothing is left in it.",
    "The question is empty. Write what you want to know.",
    "There is no agent, and so no dialog to ask in.",
    "This question was {state} by {name} at {words}.",
    "This is an ordinary question: answer it or cancel it.",
    "The dialog is {state}; ask in one that is idle, or in a new one.",
    "The dialog is {state}: there is nothing to wake it for.",
    "The dialog is {state}: there is no message to give up.",
    "This task is done already.",
    "The dialog is answered by {model} already. Choose another model, or another exit.",
    "A budget of {budget} is spent already: {spent}. Give a higher one.",
    "No message stands before turn {number}, so nothing can be answered.",
    "Turn {number} is no message of a person, and only those can be edited.",
    "“{words}” is damaged: the image breaks off. Save it anew.",
    "What was sent holds a NUL character, which cannot be stored.",
    "The server's configuration names {name}. Change it there, or copy it.",
    "Type the key again: SECRET_KEY is another one than when it was stored.",
    "You have no such sign-in, or it was unlinked before. Nothing was changed.",
    "This server sends no push notifications: its operator has switched them off.",
    "This browser is subscribed for somebody else. Subscribe it anew.",
    "Nobody else administers this server. Appoint somebody first.",
    "A key that may only read asks no model: it has no budget.",
    "Nobody here is called {name}. Invite them first.",
    "They are not in this group.",
    "This server fetches no images: DOMINDS_REMOTE_IMAGES is off.",
    "Images cannot be counted now. Try again in a minute.",
    "The agent of this proposal is gone.",
    "There is no such proposal.",
)
# What a failed call's kind says to a person, before the provider's own words.
FAILURES = {
    "auth": "The provider did not accept the key.",
    "forbidden": "The provider does not let this key do that.",
    "rate_limit": "The provider takes no more requests just now.",
    "overloaded": "The provider cannot answer just now.",
    "context_overflow": "This is too long for the model.",
    "refused": "The provider refused this request.",
    "images_refused": "The model sees no images.",
    "refused_for_good": "The provider refuses such requests.",
    "network": "The provider could not be reached.",
    "unreachable": "The provider could not be reached.",
    "timeout": "The provider took too long.",
    "malformed_stream": "No whole answer came.",
    "too_large": "The answer became too large.",
}
# Reasons why a server cannot be reached, in our words or the system's, which stand for {reason} in a sentence.
REASONS = (
    *(words for _pattern, words in unreachable.WORDS if "\\" not in words),
    *("No route to host", "Network is unreachable", "Connection timed out", "Connection reset by peer"),
)
_NAME = re.compile(r"\\\{(\w+)\\\}")
_LONG = ("words", "reason")


@cache
def _forms() -> tuple[re.Pattern[str], tuple[str, ...]]:
    """Return one pattern of all forms, each a group, the longer ones first, because some begin alike."""
    ordered = tuple(sorted(FORMS, key=len, reverse=True))
    groups = (f"(?P<form_{at}>{_group(form, at)})" for at, form in enumerate(ordered))
    return re.compile("|".join(groups), re.S), ordered


def _group(form: str, at: int) -> str:
    def fill(name: re.Match[str]) -> str:
        any_words = ".+?" if name[1] in _LONG else r"\S+?"
        return f"(?P<{name[1]}_{at}>{any_words})"

    ends = r"(?!\S)" if form.endswith((".", "}")) else ""  # a point inside a number or a file's name ends no sentence
    return _NAME.sub(fill, re.escape(form)) + ends


def pieces(text: str) -> list[tuple[str, bool]]:
    """Split a text into pieces, each with whether the runtime wrote it and so has a translation."""
    pattern, ordered = _forms()
    result, end = list[tuple[str, bool]](), 0
    for match in pattern.finditer(text):
        groups = match.groupdict()
        at = next(int(name.removeprefix("form_")) for name in groups if name.startswith("form_") and groups[name])
        values = {name.rsplit("_", 1)[0]: value for name, value in groups.items() if name.endswith(f"_{at}")}
        if "state" in values:
            values["state"] = gettext(values["state"].capitalize())
        if "reason" in values:
            values["reason"] = gettext(values["reason"])
        result += [(text[end : match.start()], False), (gettext(ordered[at]).format(**values), True)]
        end = match.end()
    return [(piece, ours) for piece, ours in (*result, (text[end:], False)) if piece]


def in_plain_words(text: str) -> str:
    """Return a text in the language of the page, without elements that mark the rest as English."""
    return text if translation.get_language() == "en" else "".join(piece for piece, _ours in pieces(text))


def in_page_language(text: str) -> SafeString | str:
    if translation.get_language() == "en" or not text:
        return text
    return format_html_join("", "{}", ((_piece(piece, ours),) for piece, ours in pieces(text)))


def _piece(piece: str, ours: bool) -> SafeString | str:
    return piece if ours or not piece.strip(" .;:") else format_html('<span lang="en">{}</span>', piece)
