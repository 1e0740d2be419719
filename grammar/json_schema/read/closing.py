"""`SchemaOptions.additional_properties` and `SchemaOptions.required`: objects take what a schema names, and all of it.

Each value that is written is described by one schema and by all that is applied to the same value: ``$ref``, ``allOf``,
``then``, a branch of ``anyOf`` or ``oneOf``, ``dependentSchemas``.  A shape of such a value notes the names and
patterns of them all (`Seen`), and is closed here, once they have been put together: closing every schema object by
itself would leave nothing of an ``allOf`` whose parts name different properties.

Closing takes documents away and never adds one.  So it is done for the values that are written and for nothing else:
what ``not``, ``if``, ``contains`` and the other branches of ``oneOf`` compare with is the schema as it stands.

Left as they are: what says something of its additional properties itself (``additionalProperties``,
``unevaluatedProperties``), what says nothing about objects (``{}``), and the objects that ``enum`` and ``const`` list.
"""

from __future__ import annotations

from ..domains.handles import Handle, KeyClass
from ..domains.shape import NOT_SEEN, Shape
from ..domains.types import OBJECT
from ..options import SchemaOptions


def closed(shape: Shape, options: SchemaOptions) -> Shape:
    """The values of a shape whose objects have only the properties that are named, or all of them, by the options."""
    seen, objects = shape.seen, shape.objects
    if seen is NOT_SEEN:
        return shape
    if not seen.of_objects or shape.values is not None or not shape.mask & OBJECT:
        return shape._replace(seen=NOT_SEEN)
    nothing: Handle = (False, shape.path)
    if options.required == "all":
        named = (name for name in objects.properties if name in seen.names)
        objects = objects._replace(required=tuple(dict.fromkeys((*objects.required, *named))))
    if options.additional_properties == "forbid" and not seen.all_names:
        if seen.patterns:
            others = KeyClass(names=seen.names, patterns=seen.patterns)
            objects = objects._replace(universals=(*objects.universals, (others, nothing)))
        else:
            properties = {name: h if name in seen.names else nothing for name, h in objects.properties.items()}
            objects = objects._replace(properties=properties, additional=nothing)
    return shape._replace(seen=NOT_SEEN, objects=objects)
