"""An MCP server on stdio, on the Python SDK: the products and orders of a shop, or its customers.

usage: shop_server.py shop|customers
"""

import sys

from mcp.server import MCPServer
from pydantic import BaseModel

server = MCPServer("shop")
attempts = 0


class Order(BaseModel):
    id: int
    customer: int
    day: int
    total: int
    note: str


class OrderPage(BaseModel):
    rows: list[Order]
    more: bool


class Customer(BaseModel):
    id: int
    name: str
    country: str
    address: str


def order(n: int) -> Order:
    return Order(id=n, customer=n % 12, day=n % 30 + 1, total=n * 7 % 500, note=f"Delivered to the door, parcel {n}")


def shop():
    @server.tool(structured_output=False)
    def list_products() -> str:
        """Lists all products as JSON."""
        import json

        product = lambda n: {"id": n, "name": f"Product {n}", "price": n * 13 % 997, "description": "Robust and light. " * 3}
        return json.dumps([product(n) for n in range(1000)])

    @server.tool()
    def list_orders(page: int = 1) -> OrderPage:
        """Lists orders, 50 on a page."""
        rows = [order(n) for n in range(50 * (page - 1), min(50 * page, 240))]
        return OrderPage(rows=rows, more=50 * page < 240)

    @server.tool(structured_output=False)
    def daily_total(day: int) -> str:
        """Returns the total of the orders of a day, as JSON."""
        import json

        of_day = [order(n) for n in range(240) if order(n).day == day]
        return json.dumps({"day": day, "orders": len(of_day), "total": sum(one.total for one in of_day)})

    @server.tool(structured_output=False)
    def export_report(month: str) -> str:
        """Exports the report of a month. It is often busy."""
        global attempts
        attempts += 1
        if attempts % 3:
            raise ValueError("the exporter is busy: try again")
        return f"report-{month}.pdf"


def customers():
    @server.tool()
    def get_customer(id: int) -> Customer:
        """Returns a customer."""
        if not 0 <= id < 12:
            raise ValueError(f"there is no customer {id}")
        country = ["Norway", "Chile", "Japan"][id % 3]
        return Customer(id=id, name=f"Customer {id}", country=country, address=f"{id} Long Street, Building B")


shop() if sys.argv[1] == "shop" else customers()
server.run()
