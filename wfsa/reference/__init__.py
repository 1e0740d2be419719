"""The published construction, literally: terminal automata, templates, parser automata; slow, small, and checked.

    weights.py          sets of tokens as a semiring
    automata.py         automata over it: determinized, minimised, drawn
    lexer.py            terminals side by side
    normal_form.py      rules whose reductions are bounded
    lr.py               their LR(0) automaton
    terminal_dwa.py     lexer state: which terminals each token spells
    templates.py        terminal: what it does to a stack
    parser_dwa.py       both composed: which tokens may follow a stack
    stacks.py           the graph of stacks
    longest.py          the policy "longest": readings, and what inhibits them
    runtime.py          masks and commits

An independent twin of the engine, and what its pictures are drawn by. Needs the extra ``reference``.
"""

from wfsa.reference.runtime import Constraint, State, compile

__all__ = ["Constraint", "State", "compile"]
