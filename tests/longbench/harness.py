"""lm-eval's own run of a LongBench task on given official rows: `simple_evaluate`, its templates, its HFLM, its scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kvcert.tasks.longbench import library


def evaluate(
    model: Any, tokenizer: Any, name: str, rows: list[dict[str, Any]], folder: Path, *, new: int, chat: bool
) -> list[dict[str, Any]]:
    """Samples in row order: `prompt`, `ids` (tokens fed to the model), `answer`, `score`.

    lm-eval's templates call the question `question`, official rows `input`: the rows are adapted, not the template.
    """
    from lm_eval import simple_evaluate
    from lm_eval.api.task import ConfigurableTask
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager
    from lm_eval.tasks._yaml_loader import load_yaml

    path = folder / f"harness-{name}.jsonl"
    adapted = [{**row, "question": row["input"], "all_classes": row["all_classes"] or []} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in adapted))
    config = load_yaml(library.folder() / f"{name}.yaml")
    config |= {
        "dataset_path": "json",
        "dataset_name": None,
        "dataset_kwargs": {"data_files": {"test": str(path)}, "cache_dir": str(folder / "datasets")},
    }
    fed: list[list[int]] = []

    class Recorded(HFLM):
        def _model_generate(self, context: Any, max_length: int, stop: Any, **kwargs: Any) -> Any:
            fed.append(context[0].tolist())
            return super()._model_generate(context, max_length, stop, **kwargs)

    harness = Recorded(pretrained=model, tokenizer=tokenizer, batch_size=1)
    found = simple_evaluate(
        harness,
        tasks=[ConfigurableTask(config=config)],
        task_manager=TaskManager(include_defaults=False),  # reading thousands of other tasks takes a minute
        apply_chat_template=chat,
        gen_kwargs={"max_gen_toks": new},
        bootstrap_iters=0,
    )
    samples = sorted(next(iter(found["samples"].values())), key=lambda sample: sample["doc_id"])
    out = [
        {
            "prompt": sample["arguments"][0][0],
            "answer": sample["resps"][0][0],
            "score": float(sample["score"]),
        }
        for sample in samples
    ]
    # The harness feeds the longest first: its tokens are found again by the prompt.
    by_prompt = {tokenizer.decode(ids): ids for ids in fed}
    for sample in out:
        sample["ids"] = by_prompt[sample["prompt"]]
    return out
