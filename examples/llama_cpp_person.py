"""A model in a GGUF file writes a document under a JSON Schema, in llama.cpp, by any build of its library.

    python examples/llama_cpp_person.py --library libllama.so --model SmolLM2-135M-Instruct.Q4_1.gguf

Without --library the script uses the one inside the installed package llama_cpp or xllamacpp, and without --model the
model of `wfsa demo`. The loop is llama.cpp's own, in C, with wfsa's sampler as the first of its chain. Calls go through
ctypes. The script knows only llama.cpp's struct of samplers; other structs are passed on as C returns them.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import json
import sys
from pathlib import Path

import wfsa
from wfsa.demo.gguf_model import find_model
from wfsa.integrations.llama_cpp import ConstraintSampler

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
PROMPT = "A person, as JSON with a name, an age and what they like:\n"


class Opaque(ctypes.Structure):
    """A struct that C returns and takes back by value; it is larger than any struct of llama.cpp."""

    _fields_ = (("bytes", ctypes.c_char * 2048),)


def find_library() -> Path:
    for package in ("llama_cpp", "xllamacpp"):
        spec = importlib.util.find_spec(package)  # finds the package without importing it
        for folder in (spec.submodule_search_locations or []) if spec else []:
            for pattern in ("lib/libllama.so", "lib/libllama.dylib", "xllamacpp*.so"):
                for file in sorted(Path(folder).glob(pattern)):
                    return file
    sys.exit("no llama.cpp library is installed: pip install xllamacpp, or pass --library")


def prototypes(library: ctypes.CDLL) -> ctypes.CDLL:
    pointer, number = ctypes.c_void_p, ctypes.c_int32
    for name, result, arguments in (
        ("llama_backend_init", None, []),
        ("llama_model_default_params", Opaque, []),
        ("llama_context_default_params", Opaque, []),
        ("llama_model_load_from_file", pointer, [ctypes.c_char_p, Opaque]),
        ("llama_model_get_vocab", pointer, [pointer]),
        ("llama_init_from_model", pointer, [pointer, Opaque]),
        ("llama_tokenize", number, [pointer, ctypes.c_char_p, number, pointer, number, ctypes.c_bool, ctypes.c_bool]),
        ("llama_batch_get_one", Opaque, [pointer, number]),
        ("llama_decode", number, [pointer, Opaque]),
        ("llama_sampler_chain_default_params", ctypes.c_bool, []),
        ("llama_sampler_chain_init", pointer, [ctypes.c_bool]),
        ("llama_sampler_chain_add", None, [pointer, pointer]),
        ("llama_sampler_init_temp", pointer, [ctypes.c_float]),
        ("llama_sampler_init_top_k", pointer, [number]),
        ("llama_sampler_init_dist", pointer, [ctypes.c_uint32]),
        ("llama_sampler_init_greedy", pointer, []),
        ("llama_sampler_sample", number, [pointer, pointer, number]),
        ("llama_sampler_free", None, [pointer]),
        ("llama_free", None, [pointer]),
        ("llama_model_free", None, [pointer]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    quiet = ctypes.CFUNCTYPE(None, number, ctypes.c_char_p, pointer)(lambda *_: None)
    library.llama_log_set(quiet, None)
    library.quiet = quiet  # must live as long as the library, which calls it
    return library


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--library", type=Path, help="libllama.so, or a library that contains its functions")
    parser.add_argument("--model", type=Path, help="a .gguf file")
    parser.add_argument("--prompt", default=PROMPT)
    parser.add_argument("--schema", type=Path, help="a file with a schema; default: a person")
    parser.add_argument("--temperature", type=float, default=0.7, help="0 takes the best token")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-tokens", type=int, default=200)
    arguments = parser.parse_args()
    path = arguments.model or find_model()
    schema = json.loads(arguments.schema.read_text(encoding="utf-8")) if arguments.schema else PERSON
    constraint = wfsa.compile_json_schema(schema, wfsa.Vocab.from_gguf(path))

    llama = prototypes(ctypes.CDLL(str(arguments.library or find_library())))
    llama.llama_backend_init()
    model = llama.llama_model_load_from_file(str(path).encode(), llama.llama_model_default_params())
    if not model:
        sys.exit(f"{path} could not be loaded")
    context = llama.llama_init_from_model(model, llama.llama_context_default_params())
    prompt = arguments.prompt.encode()
    tokens = (ctypes.c_int32 * (len(prompt) + 2))()
    n = llama.llama_tokenize(llama.llama_model_get_vocab(model), prompt, len(prompt), tokens, len(tokens), True, True)

    chain = llama.llama_sampler_chain_init(llama.llama_sampler_chain_default_params())
    sampler = ConstraintSampler(llama, constraint)
    llama.llama_sampler_chain_add(chain, sampler.pointer)  # first, since it must see all candidates
    if arguments.temperature > 0:
        llama.llama_sampler_chain_add(chain, llama.llama_sampler_init_top_k(40))
        llama.llama_sampler_chain_add(chain, llama.llama_sampler_init_temp(arguments.temperature))
        llama.llama_sampler_chain_add(chain, llama.llama_sampler_init_dist(arguments.seed))
    else:
        llama.llama_sampler_chain_add(chain, llama.llama_sampler_init_greedy())
    for _ in range(arguments.max_tokens):
        if llama.llama_decode(context, llama.llama_batch_get_one(tokens, n)):
            sys.exit("llama_decode failed")
        tokens[0] = llama.llama_sampler_sample(chain, context, -1)  # this also informs the samplers of the token
        n = 1
        sampler.check()
        if sampler.is_finished():
            break
    state = sampler.state
    assert state is not None, "check() would have raised"
    print(state.output_bytes().decode("utf-8", "replace"))
    if not state.is_finished():
        print(f"cut off after {arguments.max_tokens} tokens", file=sys.stderr)
    llama.llama_sampler_free(chain)
    llama.llama_free(context)
    llama.llama_model_free(model)


if __name__ == "__main__":
    main()
