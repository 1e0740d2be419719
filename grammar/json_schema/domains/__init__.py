"""What a schema asks of the values of one JSON type: a module and a value object for each type that has conditions.

    numbers, strings      conditions on scalars
    arrays, objects       conditions on items and members, whose schemas are handles (:mod:`.handles`)

Each domain has the same operations (:class:`.shape.Domain`): sets are met, complemented and compared, and their values
are listed if they are few, and counted.  A domain without conditions is the shared default of its module, so that most
questions are answered by identity.
Domains are named tuples: frozen, slotted, and made in a third of the time that a frozen dataclass takes.
"""
