"""Asks the server of `roce-analyze mcp` by the protocol's own client in Python, in every way that it can begin.

usage: check_mcp.py PROGRAM FOLDER
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

MODERN = "2026-07-28"
TOOLS = ["verdict", "why", "packets", "flows", "ranks", "compare", "query", "explain"]


async def check(program, folder, mode):
    """Lists, reads and calls; the client validates each result by the schema of the revision, and of the tool."""
    server = StdioServerParameters(command=program, args=["mcp", folder])
    async with Client(server, mode=mode) as client:
        version = client.protocol_version
        assert (version == MODERN) == (mode != "legacy"), (mode, version)
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == TOOLS, tools
        assert all(tool.annotations.read_only_hint and tool.output_schema for tool in tools)
        resources = (await client.list_resources()).resources
        assert len(resources) == 3, resources
        for resource in resources:
            contents = (await client.read_resource(resource.uri)).contents
            assert contents[0].text, resource
        answer = await client.call_tool("verdict", {"input": "rnr.pcap"})
        content = answer.structured_content
        assert not answer.is_error and json.loads(answer.content[0].text) == content
        assert content["rows"] and content["evidence"][0]["frames"] and content["command"], content
        answer = await client.call_tool("packets", {"input": "rnr.pcap", "roles": ["rnr_nak"], "limit": 3})
        assert all("rnr_nak" in row["roles"] for row in answer.structured_content["rows"])
        answer = await client.call_tool("verdict", {"input": "../README.md"})
        assert answer.is_error, answer
        for call in [client.call_tool("shell", {}), client.read_resource("file:///etc/passwd")]:
            try:
                await call
            except MCPError as error:
                assert error.error.code == -32602, error
            else:
                raise AssertionError("no error")
        # A call that the client gives up is cancelled, and the server goes on.
        task = asyncio.create_task(client.call_tool("verdict", {"input": "write_bw_loss.pcap"}))
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        answer = await client.call_tool("explain", {"id": "rnr"})
        assert answer.structured_content["answer"].startswith("rnr: "), answer
    return version


async def main():
    program, folder = sys.argv[1:]
    for mode in ["auto", "legacy", MODERN]:
        print(f"{mode}: {await asyncio.wait_for(check(program, folder, mode), 120)}: all calls answered")


asyncio.run(main())
