"""Where an answer ends, and its text."""

from __future__ import annotations

from collections.abc import Sequence

from kvcert.models import LoadedModel


def text(model: LoadedModel, tokens: Sequence[int], stop: Sequence[str] = ()) -> str:
    """The answer's text, without end tokens, up to the first of the texts in `stop`."""
    ids = [token for token in tokens if token not in model.stop_ids]
    answer = str(model.tokenizer.decode(ids, skip_special_tokens=True))
    return answer[: min((place for end in stop if (place := answer.find(end)) >= 0), default=len(answer))]


def ended(model: LoadedModel, tokens: Sequence[int], stop: Sequence[str] = ()) -> bool:
    """True when the last token ends an answer, or the text holds one of `stop`."""
    if tokens[-1] in model.stop_ids:
        return True
    if not stop:
        return False
    answer = str(model.tokenizer.decode(list(tokens), skip_special_tokens=True))
    return any(end in answer for end in stop)
