"""What the clients in front of untidy servers share: prints what was delivered, or the error, as one line of JSON."""

import json

from steps import describe


def deliver(use):
    """Runs a client; prints what it returns, or the first line of what it raises."""
    try:
        line = {"delivered": use()}
    except BaseException as error:
        line = {"error": describe(error).split("\n")[0]}
    # Half of a surrogate pair is no text that JSON can hold.
    line = {name: text.encode("utf-8", "backslashreplace").decode() for name, text in line.items()}
    print(json.dumps(line, ensure_ascii=False), flush=True)


async def pages(request, names):
    """Reads a list to its end, as the SDK's documentation does, and joins the names of its items."""
    found = []
    cursor = None
    while True:
        page = await request(cursor=cursor)
        found += names(page)
        cursor = page.next_cursor
        if not cursor:
            return ", ".join(found)


def texts(contents):
    """The texts of content blocks."""
    return "\n".join(content.text for content in contents)


def capabilities(declared):
    """The capabilities as JSON, without members that were not declared."""
    return json.dumps(declared.model_dump(by_alias=True, exclude_none=True), separators=(",", ":"))
