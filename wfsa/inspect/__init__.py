"""Looking at a schema and at what was compiled from it.

    check_schema       a JSON Schema judged without a vocabulary
    schema_costs       the compile time of a schema by place, and what other options would take
    schema_advice      what in a schema usually costs, and what could be written instead
    engine_comparison  the installed engines on one schema, side by side
    trace              a text token by token under a constraint
    tables             the arrays of the engine, for those who want to see them

Why a token is refused is asked of a state (``State.explain``), and so belongs to the core.
"""
