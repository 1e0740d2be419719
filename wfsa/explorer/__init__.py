"""A local page that shows what a constraint does: ``wfsa explore`` (docs/explorer.md).

    vocabularies   which vocabularies there are, and how a text is cut into their tokens
    compiled       from a source and options to a constraint, within limits, kept by content
    walk           a document token by token under a constraint, followed as it is edited
    reasons        why a byte is refused, with links into the schema
    terminals      what a grammar's terminals are called, where they stand, what begins them
    next_tokens    the mask at the cursor, grouped by what the tokens do
    cost           compile time by stage and by schema place, times along the text
    inside         stacks, LR states, lexer automaton, parser DWA, out of the plain construction
    touched        that construction as far as a text touches it
    gallery        small examples to begin with
    export         one HTML file that needs no server
    guard, app     the server: which requests are taken, and which endpoint answers them

All but the last two are plain functions and classes that know nothing of a server. Nothing here is imported by wfsa
itself; only the last two want starlette.
"""
