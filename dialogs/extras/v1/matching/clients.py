"""The clients whose habits are known. The first one that finds a dialog says which it is."""

from dialogs.extras.v1.matching import (
    aider,
    librechat,
    mini_swe_agent,
    nextchat,
    open_webui,
    opencode,
    smolagents,
    summaries,
)

MATCHERS = (  # those that ask the database last
    open_webui.MATCHER,
    librechat.MATCHER,
    opencode.MATCHER,
    aider.MATCHER,
    nextchat.MATCHER,
    smolagents.MATCHER,
    summaries.MATCHER,
    mini_swe_agent.MATCHER,
)
