"""A model of the transformers library writes people under a schema: in one call, and with generate's own options.

    python examples/transformers_person.py HuggingFaceTB/SmolLM2-135M-Instruct

Needs `pip install '.[transformers]' pydantic` in a clone, and a model's folder or its name.
"""

from __future__ import annotations

import argparse
from typing import Annotated

from pydantic import BaseModel, Field
from transformers import AutoModelForCausalLM, AutoTokenizer

import wfsa


class Person(BaseModel):
    name: Annotated[str, Field(max_length=20)]
    age: Annotated[int, Field(ge=0, le=120)]
    likes: Annotated[list[Annotated[str, Field(max_length=12)]], Field(max_length=3)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", help="a folder with a model and its tokenizer, or a name that can be downloaded")
    parser.add_argument("--max-new-tokens", type=int, default=200)
    arguments = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(arguments.model)
    model = AutoModelForCausalLM.from_pretrained(arguments.model).eval()
    prompts = ["A baker from Lyon, as JSON:\n", "A boy who likes the sea, as JSON:\n"]

    # One call: prompts in, objects out.
    people = wfsa.generate(model, tokenizer, prompts, Person, max_new_tokens=arguments.max_new_tokens)
    for number, (prompt, person) in enumerate(zip(prompts, people, strict=True)):
        print(prompt.strip(), "cut off" if number in people.cut_off else repr(person))

    # The same constraint in generate itself, with beams: the two best for the first prompt.
    inputs = tokenizer(prompts[:1], return_tensors="pt")
    masks = wfsa.integrations.transformers.logits_processor(Person, tokenizer, model=model)
    best = model.generate(
        input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], logits_processor=[masks], num_beams=3,
        num_return_sequences=2, max_new_tokens=arguments.max_new_tokens,
    )  # fmt: skip
    for tokens in best:
        print("beam:", tokenizer.decode(tokens[inputs["input_ids"].shape[1] :], skip_special_tokens=True))


if __name__ == "__main__":
    main()
