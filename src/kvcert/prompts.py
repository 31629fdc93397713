"""From an example to the token ids of one prompt, and where its context ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

from kvcert import verbatim
from kvcert.errors import KvcertError
from kvcert.files import sha256_json


class Renderable(Protocol):
    """What a prompt is made of; `kvcert.tasks.Example` is one."""

    @property
    def index(self) -> int: ...
    @property
    def instruction(self) -> str: ...
    @property
    def context(self) -> str: ...
    @property
    def question(self) -> str: ...
    @property
    def answer_prefix(self) -> str: ...
    @property
    def joiner(self) -> str: ...
    @property
    def chat(self) -> bool: ...
    @property
    def at_most(self) -> int | None: ...
    @property
    def origin(self) -> str: ...
    @property
    def turns(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Prompt:
    """A rendered prompt.

    `ids` are all tokens; the first `n_context` lie wholly before the question (template head and instruction included);
    `sha256` names ids and split; `templated` is false where the model has no chat template and plain text was used.
    `stages` are the token counts at which a multi-turn history is compressed: the ends of its turns, the last one
    `n_context`; empty for a context that is compressed once.
    """

    ids: tuple[int, ...]
    n_context: int
    text: str
    sha256: str
    templated: bool = True
    stages: tuple[int, ...] = ()


def message(example: Renderable) -> str:
    """The user message: instruction, context and question, with the example's joiner (a blank line) between them."""
    return example.joiner.join(
        part for part in (example.instruction, example.context, example.question) if part
    )


def where(example: Renderable, task: Any = None) -> str:
    """Task, example and, for a benchmark's own text, file and line: how messages begin."""
    origin = f" ({example.origin})" if example.origin else ""
    return f"task {getattr(task, 'name', task) or '?'}, example {example.index}{origin}"


def render(
    tokenizer: Any, example: Renderable, task: Any = None, *, window: int | None = None, reserve: int = 0
) -> Prompt:
    """Render and tokenise `example` once, whole.

    A benchmark's own text (`at_most` is given) is rendered to the letter: nothing is put around it where no chat template
    is used but what the tokenizer itself puts there, and too long a text is cut in the middle (kvcert.verbatim).

    Parameters
    ----------
    tokenizer
        A fast tokenizer (offsets are needed).
    example, task
        The example, and its task (or the task's name) for error messages.
    window, reserve
        The model's positions (default: the tokenizer's `model_max_length`) and how many of them the answer needs.

    Raises
    ------
    KvcertError
        Empty question, special tokens inside the text, a template that drops the question, or a prompt over the window.
    """
    place = where(example, task)
    if not example.question.strip():
        raise KvcertError(f"{place}: the question is empty")
    content, question = message(example), example.question
    if example.at_most is not None:
        content, question = verbatim.fit(tokenizer, content, question, example.at_most, place)
    # Plain text of a benchmark: as the tokenizer encodes any text, a BOS only where it adds one by itself.
    bare = example.at_most is not None and not (example.chat and has_template(tokenizer))
    for token in tokenizer.all_special_tokens:
        if token in content or token in example.answer_prefix:
            raise KvcertError(
                f"{place}: the text contains the special token {token}, which would change its structure"
            )
    if bare:
        head, templated = content, False
    elif example.chat:
        head, templated = apply_template(tokenizer, content)
    else:
        head, templated = with_bos(tokenizer, content), False
    start = head.rfind(question.strip())
    if start < 0:
        raise KvcertError(
            f"{place}: the model's chat template alters the question; its place cannot be found"
        )
    text = head + example.answer_prefix
    encoded = tokenizer(text, add_special_tokens=bare, return_offsets_mapping=True)
    ids = tuple(int(token) for token in encoded["input_ids"])
    n_context = 0
    for _, end in encoded["offset_mapping"]:
        if end > start:
            break
        n_context += 1
    ends = [end for _, end in encoded["offset_mapping"]]
    stages = turn_ends(example, head, ends, n_context, place) if example.turns else ()
    if not bare:
        check_bos(tokenizer, ids, place)
    limit = window if window is not None else int(min(tokenizer.model_max_length, 2**31))
    if len(ids) + reserve > limit:
        size = f"{len(ids)} tokens (+{reserve} to answer)"
        raise KvcertError(f"{place}: the prompt has {size}, over the model's window of {limit}")
    digest = sha256_json({"ids": ids, "n_context": n_context} | ({"stages": stages} if stages else {}))
    return Prompt(ids, n_context, text, digest, templated, stages)


def turn_ends(example: Renderable, text: str, ends: list[int], n_context: int, where: str) -> tuple[int, ...]:
    """Tokens that lie wholly before the end of each turn; what stands between the last turn and the question is its own.

    Parameters
    ----------
    text : the rendered prompt. ends : where each of its tokens ends, in characters.

    Raises
    ------
    KvcertError
        The turns are not the context, the template alters the context, or a turn has no token of its own.
    """
    if "".join(example.turns) != example.context:
        raise KvcertError(f"{where}: the turns are not the context; joined they must give it exactly")
    place = text.find(example.context)
    if place < 0:
        raise KvcertError(f"{where}: the model's chat template alters the context; its turns cannot be found")
    stages = []
    for turn in example.turns[:-1]:
        place += len(turn)
        stages.append(sum(end <= place for end in ends))
    stages.append(n_context)
    if any(later <= earlier for earlier, later in pairwise([0, *stages])):
        raise KvcertError(f"{where}: a turn has no token of its own (turns end after {stages} tokens)")
    return tuple(stages)


def has_template(tokenizer: Any) -> bool:
    """Whether the model comes with a chat template."""
    return bool(getattr(tokenizer, "chat_template", None))


def apply_template(tokenizer: Any, content: str) -> tuple[str, bool]:
    """The chat template around one user message, ready for the answer, beginning with exactly one BOS if there is one.

    A template that already begins with the BOS gets no second one; without a template the text stays plain.
    """
    templated = has_template(tokenizer)
    if templated:
        turns = [{"role": "user", "content": content}]
        text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    else:
        text = content + "\n"
    return with_bos(tokenizer, text), templated


def with_bos(tokenizer: Any, text: str) -> str:
    """The text behind exactly one BOS, where the tokenizer has one."""
    bos = tokenizer.bos_token
    return bos + text if bos and not text.startswith(bos) else text


def check_bos(tokenizer: Any, ids: tuple[int, ...], where: str) -> None:
    """Assert that a model with a BOS token gets one at the start, and not two."""
    bos = tokenizer.bos_token_id
    if bos is not None and (not ids or ids[0] != bos or ids[1:2] == (bos,)):
        raise KvcertError(
            f"{where}: the prompt must begin with exactly one BOS (id {bos}), it begins with {list(ids[:2])}"
        )


def prompt_counter(tokenizer: Any) -> Callable[[str], int]:
    """A `count_tokens` for tasks: the number of tokens of the *whole rendered prompt* with this user message.

    The answer prefix may be appended to the message: its tokens count the same but for a token at the seam.
    """

    def count(text: str) -> int:
        return len(tokenizer(apply_template(tokenizer, text)[0], add_special_tokens=False)["input_ids"])

    return count
