"""vLLM's own tool parsers read calls that a constraint allows, and the calls satisfy the tools' schemas."""

from __future__ import annotations

import json
import random
import re
from functools import lru_cache
from typing import Any

import pytest

import wfsa
from wfsa.grammar.structural_tag.formats import FORMATS

pytest.importorskip("vllm")
pytestmark = pytest.mark.engine
PARSERS = {"qwen": "hermes", "llama3": "llama3_json", "mistral_v11": "mistral"}
JUDGED = sorted(set(FORMATS) - {"mistral"})  # its parser needs mistral-common's older tokenizers
MARKS = [
    "<tool_call>", "</tool_call>", "[TOOL_CALLS]", "[ARGS]", "<|python_tag|>", "<|tool_call|>",
    "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>",
    "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>", "<|tool_call_end|>",
    "<|tool_call_argument_begin|>", "｜DSML｜", "<minimax:tool_call>", "</minimax:tool_call>", "<arg_key>",
    "</arg_key>", "<arg_value>", "</arg_value>", "]<]minimax[>[",
]  # fmt: skip
PROPERTIES = {
    "city": {"enum": ["Rome", "Oslo"]}, "days": {"type": "integer", "minimum": 0, "maximum": 9},
    "note": {"type": "string", "pattern": "^[a-c]{1,4}$"}, "mail": {"type": "string", "maxLength": 3},
}  # fmt: skip
SCHEMAS: dict[str, Any] = {
    "weather": {"type": "object", "properties": PROPERTIES, "required": ["city"], "additionalProperties": False},
    "get_now": {
        "type": "object", "properties": {"utc": {"type": "boolean"}}, "required": ["utc"],
        "additionalProperties": False,
    },
}  # fmt: skip
TOOLS = [{"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in SCHEMAS.items()]
N, MOST = 20, 400


@lru_cache
def tokenizer(special: bool) -> Any:
    import tokenizers

    from tests.integrations.tiny import tokenizer as tiny

    made = tiny.__wrapped__()
    made.add_tokens([tokenizers.AddedToken(mark, special=special, normalized=False) for mark in MARKS])
    return made


def answer(constraint: wfsa.Constraint, made: Any, begin: str, choose: random.Random) -> str | None:
    """Return a random answer that ends as soon as possible, or None if it does not end within `MOST` tokens."""
    state, ids = constraint.start(), list(made.encode(begin))
    assert all(map(state.commit, ids))
    while not state.is_accepting():
        if len(ids) == MOST:
            return None
        ids.append(int(choose.choice(state.get_mask().ids().tolist())))
        state.commit(ids[-1])
    return str(made.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("tool_choice", ["auto", "required"])
@pytest.mark.parametrize("form", JUDGED)
def test_parsers_read_calls(form: str, tool_choice: str, special: bool) -> None:
    import jsonschema
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.tool_parsers import ToolParserManager

    made = tokenizer(special)
    vocab = wfsa.Vocab.from_tokenizer(made)
    compact = wfsa.grammar.json_schema.SchemaOptions(whitespace="compact")
    constraint = wfsa.compile_tools(
        TOOLS, vocab, format=form, tool_choice=tool_choice, mode="lazy", **compact.keywords()
    )
    written = FORMATS[form]
    trigger = re.match(r"[^>\]]*[>\]]", written.begin)
    begin = written.opening or (trigger[0] if trigger else "")
    before = {"required": "", "auto": '{"name": "' if form == "llama3" else "Let me see. " + begin}[tool_choice]
    request = ChatCompletionRequest(model="any", messages=[{"role": "user", "content": "?"}], tools=TOOLS)
    judged = 0
    for seed in range(N):
        text = answer(constraint, made, before, random.Random(seed))
        if text is None:
            continue
        parser = ToolParserManager.get_tool_parser(PARSERS.get(form, form))(made, request.tools)
        extracted = parser.extract_tool_calls(text, request)
        assert extracted.tools_called and extracted.tool_calls, text
        for call in extracted.tool_calls:
            arguments = json.loads(call.function.arguments)
            assert jsonschema.Draft202012Validator(SCHEMAS[call.function.name]).is_valid(arguments), text
        judged += 1
    assert judged > N // 4
