"""An MCP server on stdio, on FastMCP, whose tools return results of any size, some of which it wraps.

usage: fastmcp_large_server.py
"""

from dataclasses import dataclass

from fastmcp import FastMCP

server = FastMCP("reports")


@dataclass
class Entry:
    id: str
    weight: float


@server.tool
def entries(rows: int) -> list[Entry]:
    """Lists the entries."""
    return [Entry(f"e-{n}", n / 2) for n in range(rows)]


@server.tool
def report(rows: int) -> str:
    """Writes the report."""
    return "All is well today. " * rows


server.run(show_banner=False)
