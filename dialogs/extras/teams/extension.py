from dialogs.extension import Extension, Piece
from dialogs.extras.teams import export, following, money, rules, side_dialogs

EXTENSION = Extension(
    name="teams",
    summary="Agents that ask other agents in side dialogs, each with a health of its own.",
    pages="dialogs.extras.teams.urls",
    routers=("dialogs.extras.teams.api.router",),
    pieces=(Piece("above-composer", "dialogs/_team.html"),),
    live_pieces={"reminder": ("team_panel",), "state": ("team_panel",)},
    tools="dialogs.extras.teams.tools.tools_for",
    agent_fields={"colleagues": rules.colleagues, "side_dialogs": rules.bounds},
    agent_form="dialogs.extras.teams.forms.agent_form",
    notices=(rules.BEGINS, rules.ASKS),
    demo_agents={"demo": {"colleagues": ["demo-mindful"]}},
    spending=money.add_team_costs,
    exported=export.export_team,
    traced_below=side_dialogs.traced_below,
    sweep=side_dialogs.sweep,
    tidy=following.follow_all,
    state_changed=side_dialogs.state_changed,
    stopped=side_dialogs.stop_those_below,
    shared=following.follow_sharing,
    dialogs_deleted=following.follow_deletion,
    dialogs_restored=following.follow_soon,
    dialog_erased=following.follow_erasure,
)
