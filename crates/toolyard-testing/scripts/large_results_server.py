"""An MCP server on stdio, on the Python SDK, whose tools return results of any size, with and without output schemas.

usage: large_results_server.py
"""

from mcp.server import MCPServer
from pydantic import BaseModel

server = MCPServer("archive")


class Row(BaseModel):
    id: str
    price: float
    tags: list[str]
    parts: list["Row"] = []


class Export(BaseModel):
    rows: list[Row]
    total: int


def table(rows: int) -> Export:
    row = lambda n: Row(id=f"r-{n}", price=n / 4, tags=["new", "blue"], parts=[Row(id=f"p-{n}", price=1, tags=[])])
    return Export(rows=[row(n) for n in range(rows)], total=rows)


def journal(lines: int) -> str:
    line = lambda n: f"2026-11-23T10:{n // 60 % 60:02}:{n % 60:02}Z INFO worker {n % 16} finished job {n} in {n % 97} ms"
    written = [line(n) for n in range(lines)]
    written[lines * 2 // 3] = "2026-11-23T10:59:59Z ERROR payment 4711 failed: the card has expired"
    return "\n".join(written)


def handbook(chapters: int) -> str:
    text = "Operators read this page before they change anything. " * 12
    chapter = lambda n: f"# Chapter {n}\n\n{text}\n\n## Duties {n}\n\n{text}\n\n### Details {n}\n\n{text}\n"
    return "\n".join([chapter(n) for n in range(chapters)] + ["# Retention\n\nAudit records are kept for 400 days.\n"])


@server.tool()
def export(rows: int = 17_000) -> Export:
    """Exports the table."""
    return table(rows)


@server.tool(structured_output=False)
def export_text(rows: int = 17_000) -> str:
    """Exports the table as text."""
    return table(rows).model_dump_json()


@server.tool()
def rows(rows: int = 1500) -> list[Row]:
    """Lists the rows of the table."""
    return table(rows).rows


@server.tool()
def log(lines: int = 7_500) -> str:
    """Reads the log."""
    return journal(lines)


@server.tool(structured_output=False)
def log_text(lines: int = 7_500) -> str:
    """Reads the log as text."""
    return journal(lines)


@server.tool()
def page(chapters: int = 35) -> str:
    """Reads the handbook."""
    return handbook(chapters)


@server.tool(structured_output=False)
def page_text(chapters: int = 35) -> str:
    """Reads the handbook as text."""
    return handbook(chapters)


server.run()
