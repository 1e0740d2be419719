"""Outlines writes people with a model of transformers, under a constraint of wfsa.

    python examples/outlines_person.py HuggingFaceTB/SmolLM2-135M-Instruct

Needs `pip install '.[outlines,transformers]'` in a clone, and a model's folder or its name.
"""

from __future__ import annotations

import argparse

import outlines
from pydantic import BaseModel, Field, ValidationError
from transformers import AutoModelForCausalLM, AutoTokenizer

from wfsa.integrations.outlines import logits_processor


class Person(BaseModel):
    name: str = Field(max_length=20)
    age: int = Field(ge=0, le=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", help="a folder with a model and its tokenizer, or a name that can be downloaded")
    parser.add_argument("--max-new-tokens", type=int, default=200)
    arguments = parser.parse_args()
    model = outlines.from_transformers(
        AutoModelForCausalLM.from_pretrained(arguments.model), AutoTokenizer.from_pretrained(arguments.model)
    )
    generator = outlines.Generator(model, processor=logits_processor(Person, model))
    for prompt in ("A baker from Lyon, as JSON: ", "A boy who likes the sea, as JSON: "):
        text = generator(prompt, max_new_tokens=arguments.max_new_tokens)
        try:
            print(prompt + repr(Person.model_validate_json(text)))
        except ValidationError:
            print(prompt + "cut off")


if __name__ == "__main__":
    main()
