"""FastMCP's proxy in front of a server: fastmcp-proxy.py URL PORT MODE"""

import sys

from fastmcp.server import create_proxy

url, port, mode = sys.argv[1:]
create_proxy(url, mode=mode).run(
    transport="http", host="127.0.0.1", port=int(port), show_banner=False, log_level="ERROR"
)
