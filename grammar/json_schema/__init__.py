"""JSON Schema: a schema in, a grammar of the JSON texts of its documents out (see :mod:`.lowering`)."""

from wfsa.grammar.json_schema.lowering import LoweredSchema, read_json_schema
from wfsa.grammar.json_schema.options import SchemaOptions
from wfsa.grammar.json_schema.report import ReportEntry, SchemaReport

__all__ = ["LoweredSchema", "ReportEntry", "SchemaOptions", "SchemaReport", "read_json_schema"]
