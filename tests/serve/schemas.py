#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Schemas that pydantic writes for ordinary models: each is taken, and what is drawn in it is taken by pydantic and by
jsonschema."""

import datetime
import decimal
import enum
import json
import time
import typing
import uuid

import jsonschema
import pydantic
from pydantic import BaseModel, ConfigDict, Field

from server import Checks, Server

begun = time.time()
check = Checks()


class Colour(enum.Enum):
    red = "red"
    green = "green"


class Level(enum.IntEnum):
    low = 1
    high = 2


class Address(BaseModel):
    street: str
    zip: str = Field(pattern=r"^\d{5}(-\d{4})?$")


class Person(BaseModel):
    name: str = Field(min_length=1, max_length=20)
    age: int = Field(ge=0, le=150)
    address: Address | None = None


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    score: float | None = Field(ge=0, le=1)
    weight: float = Field(gt=0, lt=10, multiple_of=0.5)


class Extra(BaseModel):
    model_config = ConfigDict(extra="allow")
    id: int


class Times(BaseModel):
    day: datetime.date
    at: datetime.datetime
    clock: datetime.time
    span: datetime.timedelta


class Names(BaseModel):
    id: uuid.UUID
    home: pydantic.AnyUrl
    site: pydantic.HttpUrl
    ip4: pydantic.IPvAnyAddress | None = None


class Money(BaseModel):
    amount: decimal.Decimal
    small: decimal.Decimal = Field(max_digits=5, decimal_places=2)


class Numbers(BaseModel):
    positive: pydantic.PositiveInt
    negative: pydantic.NegativeInt
    natural: pydantic.NonNegativeInt
    real: pydantic.PositiveFloat
    even: int = Field(multiple_of=2, ge=-10, le=10)
    whole: pydantic.StrictInt


class Lists(BaseModel):
    words: list[str] = Field(min_length=1, max_length=3)
    pair: tuple[int, str]
    many: tuple[int, ...]
    colours: set[Colour]
    nested: list[list[bool]]


class Maps(BaseModel):
    counts: dict[str, int]
    by_colour: dict[Colour, int]
    codes: dict[typing.Annotated[str, Field(pattern=r"^[a-z]{2}$")], float]
    few: dict[str, bool] = Field(min_length=1, max_length=2)


class Choices(BaseModel):
    kind: typing.Literal["a", "b", 3]
    colour: Colour
    level: Level
    one: typing.Literal["only"]


class Cat(BaseModel):
    kind: typing.Literal["cat"]
    lives: int = Field(ge=0, le=9)


class Dog(BaseModel):
    kind: typing.Literal["dog"]
    tricks: list[str] = []


class Pet(BaseModel):
    pet: typing.Annotated[Cat | Dog, Field(discriminator="kind")]


class Either(BaseModel):
    value: int | str | list[int] | Address


class Node(BaseModel):
    value: int
    children: list["Node"] = Field(default=[], max_length=2)


class Expression(BaseModel):
    left: typing.Union[int, "Expression"]
    operator: typing.Literal["+", "-"]
    right: typing.Union[int, "Expression"]


class Step(BaseModel):
    explanation: str
    output: str


class Reasoning(BaseModel):
    steps: list[Step]
    final_answer: str


class Defaults(BaseModel):
    "What has defaults, titles and examples."
    name: str = Field("x", title="Name", description="A name", examples=["a"])
    size: int | None = Field(None, deprecated=True)
    flag: bool = True


class Base(BaseModel):
    id: int


class Derived(Base):
    model_config = ConfigDict(title="Derived")
    parts: list[Base]


class Bytes(BaseModel):
    data: bytes = Field(max_length=8)
    secret: pydantic.SecretStr
    code: typing.Annotated[str, pydantic.StringConstraints(pattern=r"^[A-Z]{3}\d+$", max_length=8)]


class Alias(BaseModel):
    first_name: str = Field(alias="firstName")
    snow: str = Field(alias="schnee ❄")


class Any(BaseModel):
    anything: typing.Any
    object: dict[str, typing.Any]


Wrapped = pydantic.RootModel[list[Person]]
models = [
    Address,
    Person,
    Strict,
    Extra,
    Times,
    Names,
    Money,
    Numbers,
    Lists,
    Maps,
    Choices,
    Pet,
    Either,
    Node,
    Expression,
    Reasoning,
    Defaults,
    Derived,
    Bytes,
    Alias,
    Any,
    Wrapped,
]

# Of a time it looks for one without a zone, which RFC 3339 asks for.
formats = jsonschema.FormatChecker([each for each in jsonschema.FormatChecker.checkers if each != "time"])
server = Server()
accepted = 0
for model in models:
    schema = model.model_json_schema()
    found = []
    for seed in range(2):
        body = {
            "messages": [{"role": "user", "content": "Tell me a story."}],
            "temperature": 1,
            "seed": seed,
            "max_tokens": 450,
            "response_format": {
                "type": "json_schema",
                "json_schema": {
                    "name": model.__name__[:60].replace("[", "_").replace("]", "_"),
                    "schema": schema,
                    "strict": True,
                },
            },
        }
        status, _, answer = server.ask("POST", "/v1/chat/completions", body, seconds=120)
        if status != 200:
            check(False, f"{model.__name__}: {answer}")
            break
        text = answer["choices"][0]["message"]["content"]
        try:
            jsonschema.validate(json.loads(text), schema, format_checker=formats)
            # Their schemas let through more than they take: a number of any digits, an address of any scheme.
            if model not in (Money, Names):
                model.model_validate_json(text)
            found.append(text)
        except Exception as problem:
            check(False, f"{model.__name__}: {text!r}: {problem}")
    accepted += len(found) == 2
check.equal(accepted, len(models), "models whose schemas are taken and kept")
check.end(f"pydantic: {accepted} of {len(models)} models", begun)
