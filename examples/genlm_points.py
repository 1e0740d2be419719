"""genlm-control samples points from a model conditioned on a schema, and prints the probability of each.

    python examples/genlm_points.py HuggingFaceTB/SmolLM2-135M-Instruct

Needs `pip install '.[genlm]'` in a clone, and a model's folder or its name.
"""

from __future__ import annotations

import argparse
import asyncio
import json

from genlm.control import AWRS, PromptedLLM

from wfsa.integrations.genlm_control import logits_processor

POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer", "minimum": 0, "maximum": 9}, "y": {"enum": [0, 1]}},
    "required": ["x", "y"],
    "additionalProperties": False,
}


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", help="a folder with a model and its tokenizer, or a name that can be downloaded")
    parser.add_argument("--particles", type=int, default=8)
    parser.add_argument("--max-tokens", type=int, default=40)
    arguments = parser.parse_args()
    llm = PromptedLLM.from_name(arguments.model, backend="hf")
    llm.set_prompt_from_str("A point, as JSON:")
    sampler = AWRS(llm, logits_processor(POINT, llm))
    sequences = await sampler.smc(n_particles=arguments.particles, ess_threshold=0.5, max_tokens=arguments.max_tokens)
    for text, weight in sorted(sequences.decoded_posterior.items(), key=lambda item: -item[1]):
        print(f"{weight:.3f}  {json.dumps(json.loads(text))}")


if __name__ == "__main__":
    asyncio.run(main())
