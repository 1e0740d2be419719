"""Conditions on the values of one JSON type: a module and a value object for each type that has conditions.

    numbers, strings      conditions on scalars
    arrays, objects       conditions on items and members, whose schemas are handles (:mod:`.handles`)

All domains have the same operations (:class:`.shape.Domain`): sets are intersected, complemented and compared, their
values are counted, and listed if they are few.  Each module has a shared default, the domain without conditions, so
that identity answers most questions.  Domains are named tuples, which are frozen and take a third of the time of a
frozen dataclass to make.
"""
