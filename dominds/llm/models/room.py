"""Room for output: how many tokens a request may ask for."""

from dominds.llm.models.model import ModelInfo

LEAST_OUTPUT_TOKENS = 16  # OpenAI refuses less
LEAST_MARGIN_TOKENS = 64
MARGIN_SHARE = 0.05  # of the prompt: the error of an estimate
CALIBRATED_SHARE = 0.01  # of the prompt: the error that remains after calibration
# Tokens: an answer is asked to be this long even if the margin for text that is denser than expected then goes. A
# refused request is repeated, but an answer that was cut is not.
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
    """Return the tokens of output to ask for, or None if neither a length nor the window is known.

    That is the model's greatest output, or ``wanted`` if less, within the window beside a prompt of ``est_prompt``.
    ``window`` is that of the running model, if it differs from the catalog's. ``margin`` is the greatest error of a
    calibrated estimate in tokens; it stays free if that leaves room for an answer of ``shortest`` tokens. Without
    ``margin``, a twentieth of the prompt stays free.
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
