// What both client programs share: runs named steps, prints one JSON line for each and the revision last.
// A step that fails is reported and never thrown; the exit code says whether one failed.

// Milliseconds that one step may take; the runner has a longer deadline for the whole program.
const DEADLINE = 20_000;

export const SAMPLED = "sampled by the peer";
export const ROOT = "file:///interop/root";

export class Steps {
    failed = false;

    // What the step resolves to is the detail, what it throws is the failure.
    async run(name, step) {
        let timer;
        const deadline = new Promise((_, reject) => {
            timer = setTimeout(() => reject(new Error("the step took too long")), DEADLINE);
        });
        try {
            this.report(name, true, await Promise.race([step(), deadline]));
        } catch (error) {
            this.report(name, false, describe(error));
        } finally {
            clearTimeout(timer);
        }
    }

    report(name, ok, detail) {
        this.failed ||= !ok;
        console.log(JSON.stringify({ step: name, ok, detail }));
    }

    finish(revision) {
        console.log(JSON.stringify({ revision }));
        process.exitCode = this.failed ? 1 : 0;
    }
}

export function expect(condition, message) {
    if (!condition) throw new Error(message);
}

export function describe(error) {
    return `${error?.name ?? "Error"}: ${error?.message ?? error}`;
}

// The steps that every client takes; `client` is the SDK's, `slow(options)` calls the slow tool with its options. `extras` says
// whether the client can elicit, and has the steps that differ between SDKs.
export async function use(steps, client, slow, extras) {
    let tools = [];
    let uris = [];
    let prompts = [];
    const call = async (name, args) => {
        const result = await client.callTool({ name, arguments: args });
        expect(!result.isError, `the tool failed: ${JSON.stringify(result.content)}`);
        return result.content[0].text;
    };
    await steps.run("tools/list", async () => {
        const names = (await client.listTools()).tools.map((tool) => tool.name);
        expect(["echo", "slow", "ask"].every((name) => names.includes(name)), `a tool is missing: ${names}`);
        tools = names;
        return names;
    });
    await steps.run("tools/call", async () => {
        const text = "Grüße, 世界";
        expect((await call("echo", { text })) === text, "another text came back");
        return text;
    });
    await steps.run("resources/list", async () => {
        uris = (await client.listResources()).resources.map((resource) => resource.uri);
        expect(uris.length > 0, "no resource");
        return uris;
    });
    await steps.run("resources/read", async () => {
        for (const uri of uris) {
            const { contents } = await client.readResource({ uri });
            expect(contents[0]?.uri === uri, `no contents, or of another resource: ${uri}`);
        }
        return `${uris.length} read`;
    });
    await steps.run("resources/templates/list", async () => {
        const { resourceTemplates } = await client.listResourceTemplates();
        return resourceTemplates.map((template) => template.uriTemplate);
    });
    await steps.run("prompts/list", async () => {
        prompts = (await client.listPrompts()).prompts;
        expect(prompts.length > 0, "no prompt");
        return prompts.map((prompt) => prompt.name);
    });
    await steps.run("prompts/get", async () => {
        for (const { name, arguments: declared = [] } of prompts) {
            const required = declared.filter((argument) => argument.required);
            const args = Object.fromEntries(required.map((argument) => [argument.name, "you"]));
            const { messages } = await client.getPrompt({ name, arguments: args });
            expect(messages.length > 0, `no message: ${name}`);
        }
        return `${prompts.length} read`;
    });
    await steps.run("progress", () => progress(slow));
    await steps.run("cancel", () => cancel(client, slow));
    await asked(steps, () => call("ask", {}));
    if (tools.includes("note")) {
        await steps.run("completion/complete", async () => {
            const ref = { type: "ref/prompt", name: "greet" };
            const { completion } = await client.complete({ ref, argument: { name: "name", value: "Wor" } });
            expect(completion.values.join() === "Wor!", `other values came back: ${completion.values}`);
            return completion.values;
        });
        await steps.run("logging", extras.note);
    }
    if (tools.includes("interview") && extras.elicits) {
        await steps.run("elicitation/create", async () => {
            const text = await call("interview", {});
            expect(text === ["First?", SAMPLED, "Second?"].join("\n"), `other answers came back: ${text}`);
            return text;
        });
    }
}

// A call of the tool that asks: one step, and one more for each answer that came back in its text.
async function asked(steps, ask) {
    let text = "";
    await steps.run("ask", async () => {
        text = await ask();
        expect(text.includes(ROOT) || text.includes(SAMPLED), `no answer of this program in ${text}`);
        return text;
    });
    for (const [name, answer] of Object.entries({ "roots/list": ROOT, "sampling/createMessage": SAMPLED })) {
        if (text.includes(answer)) steps.report(name, true, answer);
    }
}

// The SDKs drop a notification that comes in one piece with the result, so that the last one may be missing.
async function progress(slow) {
    const values = [];
    const result = await slow({ onprogress: ({ progress }) => values.push(progress) });
    expect(!result.isError, `the tool failed: ${JSON.stringify(result.content)}`);
    expect(values.length > 0, "no progress arrived");
    expect(values.every((value, at) => at === 0 || values[at - 1] < value), `progress does not increase: ${values}`);
    return `${values.length} notifications`;
}

// Cancels a slow call after its first progress; the session must go on. Says whether an answer came all the same.
async function cancel(client, slow) {
    const late = [];
    const before = client.onerror;
    client.onerror = (error) => late.push(describe(error));
    try {
        const controller = new AbortController();
        const options = { onprogress: () => controller.abort("enough"), signal: controller.signal };
        const outcome = await slow(options).then(() => "ended", () => "cancelled");
        expect(outcome === "cancelled", "the call ended before it could be cancelled");
        await client.callTool({ name: "echo", arguments: { text: "still here" } });
    } finally {
        client.onerror = before;
    }
    const answers = late.filter((message) => message.includes("unknown message ID"));
    return { answered: answers.length > 0, with: answers[0]?.slice(0, 200) ?? null };
}
