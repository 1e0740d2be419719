"""Documents of a type's schema are taken by the type: random walks to the end, read by pydantic."""

from __future__ import annotations

import datetime
import decimal
import ipaddress
import random
import uuid
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

import wfsa
from tests.walks.walk import choose, finish_by_closing, vocabulary

pydantic = pytest.importorskip("pydantic")
from pydantic import Field, StringConstraints, TypeAdapter  # noqa: E402

pytestmark = pytest.mark.engine
WALKS = 60


class Size(Enum):
    HALF = 0.5
    ONE = 1


TYPES: dict[str, Any] = {
    "HttpUrl": pydantic.HttpUrl,
    "AnyUrl": pydantic.AnyUrl,
    "AnyHttpUrl": pydantic.AnyHttpUrl,
    "FileUrl": pydantic.FileUrl,
    "PostgresDsn": pydantic.PostgresDsn,
    "Decimal": decimal.Decimal,
    "Decimal digits": Annotated[decimal.Decimal, Field(max_digits=5, decimal_places=2)],
    "Decimal bounds": Annotated[decimal.Decimal, Field(ge=0, le=decimal.Decimal("9.5"))],
    "timedelta": datetime.timedelta,
    "date": datetime.date,
    "date bounds": Annotated[datetime.date, Field(ge=datetime.date(1999, 12, 30), lt=datetime.date(2024, 3, 1))],
    "time": datetime.time,
    "datetime": datetime.datetime,
    "AwareDatetime": pydantic.AwareDatetime,
    "NaiveDatetime": pydantic.NaiveDatetime,
    "IPv4": ipaddress.IPv4Address,
    "IPv6": ipaddress.IPv6Address,
    "IPv4Network": ipaddress.IPv4Network,
    "IPv6Network": ipaddress.IPv6Network,
    "IPv4Interface": ipaddress.IPv4Interface,
    "IPvAnyAddress": pydantic.IPvAnyAddress,
    "IPvAnyNetwork": pydantic.IPvAnyNetwork,
    "UUID": uuid.UUID,
    "UUID4": pydantic.UUID4,
    "UUID7": pydantic.UUID7,
    "Base64Str": pydantic.Base64Str,
    "Base64Bytes": pydantic.Base64Bytes,
    "Base64UrlBytes": pydantic.Base64UrlBytes,
    "SecretStr": pydantic.SecretStr,
    "Path": Path,
    "float": float,
    "finite float": pydantic.FiniteFloat,
    "bounded float": Annotated[float, Field(gt=0, lt=1)],
    "int": Annotated[int, Field(ge=-5, le=10**6, multiple_of=5)],
    "Fraction": Fraction,
    "pattern": Annotated[str, StringConstraints(pattern=r"^\d{2}-\w+$")],
    "stripped": Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=9)],
    "ByteSize": pydantic.ByteSize,
    "Enum of numbers": Size,
    "Literal": Literal[1, "a", None],
    "int keys": dict[int, bool],
    "float keys": dict[float, int],
    "bool keys": dict[bool, int],
    "set": Annotated[set[int], Field(max_length=3)],
    "tuple": tuple[int, str],
    "bytes": bytes,
}


@pytest.mark.parametrize("name", TYPES)
def test_type_takes_the_documents_of_its_schema(name: str) -> None:
    adapter, vocab = TypeAdapter(TYPES[name]), vocabulary()
    constraint = wfsa.compile_json_schema(TYPES[name], vocab, mode="lazy")
    refused, seen = [], set()
    for seed in range(WALKS):
        rng, state = random.Random(seed), constraint.start()
        for _ in range(rng.randrange(25)):
            if state.is_finished():
                break
            assert state.commit(choose(state.get_mask().ids().tolist(), rng))
        finish_by_closing(state, rng)
        text = state.text()
        seen.add(text)
        try:
            adapter.validate_json(text)
        except pydantic.ValidationError as error:
            refused.append((text, str(error).splitlines()[-2]))
    assert not refused, f"{len(refused)} of {len(seen)}: {refused[:3]}"
