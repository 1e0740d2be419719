"""A model in MLX writes people under a schema.

    python examples/mlx_person.py mlx-community/SmolLM2-135M-Instruct

Needs `pip install '.[mlx]'` (on Linux with the `mlx-cpu` or a CUDA build of MLX), and a model's folder or its name.
"""

from __future__ import annotations

import argparse
import json

import mlx_lm

from wfsa.integrations.mlx_lm import logits_processor

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "likes": {"type": "array", "items": {"type": "string", "maxLength": 12}, "maxItems": 3},
    },
    "required": ["name", "age", "likes"],
    "additionalProperties": False,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", help="a folder with a model and its tokenizer, or a name that can be downloaded")
    parser.add_argument("--max-tokens", type=int, default=200)
    arguments = parser.parse_args()
    model, tokenizer = mlx_lm.load(arguments.model)
    masks = logits_processor(PERSON, tokenizer)
    for prompt in ("A baker from Lyon, as JSON: ", "A boy who likes the sea, as JSON: "):
        text, reason = "", None
        for part in mlx_lm.stream_generate(
            model, tokenizer, prompt, max_tokens=arguments.max_tokens, logits_processors=[masks]
        ):
            text, reason = text + part.text, part.finish_reason
        print(prompt + (json.dumps(json.loads(text)) if reason == "stop" else "cut off"))


if __name__ == "__main__":
    main()
