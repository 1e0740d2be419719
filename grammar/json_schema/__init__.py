"""JSON Schema: a schema in, a grammar of the JSON texts of its documents out (see :mod:`.lowering`)."""

from wfsa.grammar.json_schema.lowering import LoweredSchema, read_json_schema
from wfsa.grammar.json_schema.options import SchemaOptions
from wfsa.grammar.json_schema.report import ReportEntry, SchemaReport
from wfsa.grammar.json_schema.sources import SchemaSource
from wfsa.grammar.json_schema.tools import read_tools

__all__ = [
    "LoweredSchema", "ReportEntry", "SchemaOptions", "SchemaReport", "SchemaSource", "read_json_schema", "read_tools",
]  # fmt: skip
