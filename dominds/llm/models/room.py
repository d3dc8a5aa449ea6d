"""Room for output: how many tokens a request may ask for."""

from dominds.llm.models.model import ModelInfo

LEAST_OUTPUT_TOKENS = 16  # OpenAI refuses less
LEAST_MARGIN_TOKENS = 64
MARGIN_SHARE = 0.05  # the share of the prompt by which an estimate may be off
CALIBRATED_SHARE = 0.01  # the error that remains once reports have corrected the estimate
# Tokens: asked for before such text is feared, since a refusal is repeated and a cut answer is not.
SHORTEST_ANSWER = 2_048


def output_room(
    model: ModelInfo,
    est_prompt: int | None,
    *,
    window: int | None = None,
    wanted: int | None = None,
    margin: int | None = None,
    shortest: int = SHORTEST_ANSWER,
) -> int | None:
    """Return the tokens of output to ask for: what the model can write or is ``wanted``, within what the window leaves
    beside a prompt of ``est_prompt``. None where neither is known.

    ``window`` is the one that the model runs with now, if it differs from the catalog's. ``margin`` is the greatest
    error of a calibrated estimate in tokens, and stays free as far as that leaves room for an answer of ``shortest``
    tokens. Without ``margin``, a twentieth of the prompt stays free.
    """
    most = min([tokens for tokens in (model.output_length, wanted) if tokens is not None], default=None)
    window = window or model.limit[0]
    if window is None or est_prompt is None:
        return most
    left = window - est_prompt
    if margin is None:
        left -= max(LEAST_MARGIN_TOKENS, round(est_prompt * MARGIN_SHARE))
    else:
        sure = left - max(LEAST_MARGIN_TOKENS, round(est_prompt * CALIBRATED_SHARE))
        left = max(left - max(LEAST_MARGIN_TOKENS, margin), min(sure, shortest))
    return max(LEAST_OUTPUT_TOKENS, left if most is None else min(most, left))
