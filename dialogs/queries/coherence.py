"""The likeness of the text before and after a rewrite. It is measured on demand, since measuring takes longer than the
rewrite."""

from dialogs.context.view import units_of_view
from remediation.models import RemediationRun
from remediation.rewards import with_coherence
from remediation.similarity.embeddings import similarity
from remediation.strategies.outcome import text_of


def measure(run_id: int) -> float:
    """Measure a rewrite's coherence, from 0 to 1, by MiniLM if installed, and store it with the reward in its row."""
    run = RemediationRun.objects.get(pk=run_id)
    if run.coherence is not None:
        return run.coherence
    run.coherence = similarity(text_before(run), text_of(units_of_view(run.dialog_id, run.view)))
    if run.reward_record:
        run.reward_record = with_coherence(run.reward_record, run.coherence)
        run.reward = run.reward_record["reward"]
    run.save(update_fields=["coherence", "reward", "reward_record"])
    return run.coherence


def text_before(run: RemediationRun) -> str:
    """Return the text before the rewrite in the dialog's order: the removed units and those that stayed."""
    turns = {unit["id"]: unit["turns"] for unit in run.removed}
    removed = [
        (min(turns.get(name) or (0,)), text) for name, text in run.units.order_by("pk").values_list("unit_id", "text")
    ]
    stayed = units_of_view(run.dialog_id, [item for item in run.view if not item.get("is_new")])
    texts = [*removed, *((min(unit.source, default=0), unit.text) for unit in stayed)]
    return "\n\n".join(text for _, text in sorted(texts, key=lambda text: text[0]))
