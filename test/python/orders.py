"""Orders by id, on FastMCP: orders.py PORT. An unknown order is an error of the tool."""

import sys

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from pydantic import BaseModel

server = FastMCP(name="orders", version="1.0.0")


class Order(BaseModel):
    status: str
    carrier: str
    eta: str


ORDERS = {"PT-1041": Order(status="shipped", carrier="Delhivery", eta="2026-08-05")}


@server.tool
def order_status(order_id: str) -> Order:
    """Looks an order up"""
    order = ORDERS.get(order_id)
    if order is None:
        raise ToolError(f"Order {order_id} was not found.")
    return order


server.run(
    transport="http",
    host="127.0.0.1",
    port=int(sys.argv[1]),
    path="/mcp",
    show_banner=False,
    uvicorn_config={"log_level": "error"},
)
