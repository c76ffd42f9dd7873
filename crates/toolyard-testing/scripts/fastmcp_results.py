"""FastMCP as a client of results that are validated: takes calls, and prints as JSON what an application sees of each.

usage: fastmcp_results.py URL KEY CALLS

CALLS is a JSON list of [tool, arguments]. `data` is the result as an object of the type that FastMCP makes of the output
schema, and `is_object` is true if its members are attributes.
"""

import asyncio
import dataclasses
import json
import logging
import sys

from fastmcp import Client
from pydantic import BaseModel


class Errors(logging.Handler):
    """FastMCP logs structured content that it cannot parse."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


def as_value(data):
    if isinstance(data, list):
        return [as_value(item) for item in data]
    if isinstance(data, dict):
        return {name: as_value(value) for name, value in data.items()}
    if isinstance(data, BaseModel):
        return data.model_dump(mode="json")
    return dataclasses.asdict(data) if dataclasses.is_dataclass(data) else data


async def main(url, key, calls):
    errors = Errors()
    for name in ("", "fastmcp"):
        logging.getLogger(name).addHandler(errors)
    seen = []
    async with Client(url, auth=key) as client:
        for tool, arguments in calls:
            errors.lines.clear()
            try:
                result = await client.call_tool(tool, arguments)
            except Exception as error:  # What an application sees.
                seen.append({"refused": f"{type(error).__name__}: {error}"[:500]})
                continue
            is_object = not isinstance(result.data, (dict, list, str, type(None)))
            call = {"data": as_value(result.data), "is_object": is_object, "structured": result.structured_content}
            texts = [block.text for block in result.content]
            seen.append(call | {"texts": texts, "errors": list(errors.lines)})
    print(json.dumps(seen))


asyncio.run(main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3])))
