// What both servers offer, as README.md describes it: plain data, and the answers that need no SDK.

// Notifications of the slow tool, and milliseconds before each one.
export const STEPS = 20;
export const STEP = 50;

const schema = (properties) => ({ type: "object", properties, required: Object.keys(properties) });

export const TOOLS = [
    { name: "echo", description: "Answers with the text", inputSchema: schema({ text: { type: "string" } }) },
    { name: "slow", description: "Reports progress", inputSchema: schema({}) },
    { name: "ask", description: "Asks the client", inputSchema: schema({}) },
    { name: "note", description: "Logs a message", inputSchema: schema({}) },
];

// Not every release can elicit.
export const INTERVIEW = { name: "interview", description: "Asks several times", inputSchema: schema({}) };

export const form = (message) => ({ message, requestedSchema: schema({ word: { type: "string" } }) });

export const completion = ({ value }) => ({ completion: { values: [`${value}!`] } });

export const RESOURCES = [
    { uri: "interop://greeting", name: "greeting", mimeType: "text/plain" },
    { uri: "interop://bytes", name: "bytes", mimeType: "application/octet-stream" },
];

export const TEMPLATES = [{ uriTemplate: "interop://item/{id}", name: "item" }];

export const PROMPTS = [
    {
        name: "greet",
        description: "A greeting",
        arguments: [{ name: "name", description: "Who is greeted", required: true }],
    },
];

export const QUESTION = {
    messages: [{ role: "user", content: { type: "text", text: "Say something" } }],
    maxTokens: 16,
};

export const text = (value) => ({ content: [{ type: "text", text: value }] });

export function contents(uri) {
    const path = uri.replace("interop://", "");
    if (path === "bytes") {
        // In base64 these need both letters in which its two alphabets differ.
        const blob = Buffer.from([0xfb, 0xef, 0xff]).toString("base64");
        return { uri, mimeType: "application/octet-stream", blob };
    }
    if (path === "greeting") return { uri, mimeType: "text/plain", text: "Hello" };
    if (path.startsWith("item/")) return { uri, mimeType: "text/plain", text: path.replace("item/", "item ") };
    throw new Error(`unknown resource: ${uri}`);
}

export function prompt(name, args) {
    if (name !== "greet") throw new Error(`unknown prompt: ${name}`);
    return { messages: [{ role: "user", content: { type: "text", text: `Hello, ${args.name}` } }] };
}
