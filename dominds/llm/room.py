"""Room for output: how many tokens a request may ask for."""

from dominds.llm.catalog.model import ModelInfo

LEAST_OUTPUT_TOKENS = 16  # OpenAI refuses less
LEAST_MARGIN_TOKENS = 64
MARGIN_SHARE = 0.05  # of the prompt: what an estimate may be off by


def output_room(
    model: ModelInfo,
    est_prompt: int | None,
    *,
    window: int | None = None,
    wanted: int | None = None,
    margin_share: float = MARGIN_SHARE,
) -> int | None:
    """Tokens to ask for: what the model can write or is ``wanted``, and what the window leaves behind a prompt of
    ``est_prompt``; None where neither is known.

    ``window`` is the one that the model runs with now, where that is another than the catalog's; ``margin_share`` of the
    prompt stays free for what the estimate may be off by.
    """
    most = min([tokens for tokens in (model.output_length, wanted) if tokens is not None], default=None)
    window = window or model.limit[0]
    if window is None or est_prompt is None:
        return most
    margin = max(LEAST_MARGIN_TOKENS, round(est_prompt * margin_share))
    left = max(LEAST_OUTPUT_TOKENS, window - est_prompt - margin)
    return left if most is None else max(LEAST_OUTPUT_TOKENS, min(most, left))
