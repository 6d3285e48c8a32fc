"""What both client programs share: runs named steps, prints one JSON line for each and the revision last.

Takes coroutines, gives lines on standard output and the exit code; never raises for a step that fails.
"""

import json
import sys

import anyio

DEADLINE = 20
"""Seconds that one step may take; the runner has a longer deadline for the whole program."""

SAMPLED = "sampled by the peer"
INTERVIEW = ["First?", SAMPLED, "Second?"]
ROOT = "file:///interop/root"


class Steps:
    """Runs steps one after another; remembers whether one failed, and the revision, once there is one."""

    def __init__(self):
        self.failed = False
        self.revision = None

    async def run(self, name, step, *arguments):
        """Awaits a step; what it returns is the detail, what it raises is the failure."""
        try:
            with anyio.fail_after(DEADLINE):
                detail = await step(*arguments)
        except Exception as error:
            self.report(name, False, describe(error))
        else:
            self.report(name, True, detail)

    async def asked(self, step, *arguments):
        """Awaits a call of the tool that asks: one step, and one more for each answer that came back in its text."""
        text = None

        async def ask():
            nonlocal text
            text = await step(*arguments)
            expect(ROOT in text or SAMPLED in text, f"no answer of this program in {text!r}")
            return text

        await self.run("ask", ask)
        for name, answer in {"roots/list": ROOT, "sampling/createMessage": SAMPLED}.items():
            if text and answer in text:
                self.report(name, True, answer)

    async def extras(self, tools, call, complete, note=None):
        """Takes the steps of tools that a server may offer."""
        if "note" in tools:

            async def completed():
                values = await complete("greet", "name", "Wor")
                expect(values == ["Wor!"], f"other values came back: {values}")
                return values

            await self.run("completion/complete", completed)
        if "note" in tools and note:
            await self.run("logging", note)
        if "interview" in tools:

            async def interviewed():
                text = await call("interview", {})
                expect(text.split("\n") == INTERVIEW, f"other answers came back: {text!r}")
                return text

            await self.run("elicitation/create", interviewed)

    def report(self, name, ok, detail):
        """Prints the line of a step."""
        self.failed |= not ok
        emit({"step": name, "ok": ok, "detail": detail})

    def broken(self, error):
        """Reports what ended the connection."""
        self.report("shutdown" if self.revision else "connect", False, describe(error))

    def finish(self):
        """Prints the last line and ends the program."""
        emit({"revision": self.revision})
        sys.exit(1 if self.failed else 0)


def expect(condition, message):
    """Fails the step when the condition does not hold; unlike `assert`, also with -O."""
    if not condition:
        raise ValueError(message)


def describe(error):
    """An error in one line; of a group, its members."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(describe(member) for member in error.exceptions)
    return f"{type(error).__name__}: {error}"


def increasing(values):
    """The number of progress values, which must grow strictly and be there at all."""
    expect(values, "no progress arrived")
    expect(all(a < b for a, b in zip(values, values[1:])), f"progress does not increase: {values}")
    return f"{len(values)} notifications"


def emit(line):
    print(json.dumps(line), flush=True)
