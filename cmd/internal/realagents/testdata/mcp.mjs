// The TypeScript SDK's client, in a conversation with atm mcp: mcp.mjs ATM DIR
import { execFileSync } from "node:child_process";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ResourceUpdatedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";

const [atm, cwd] = process.argv.slice(2);
const run = (...args) => execFileSync(atm, args, { cwd, encoding: "utf8" }).trim();
const say = (what, value) => console.log(what + " " + JSON.stringify(value));

const client = new Client({ name: "typescript", version: "1" });
const updated = [];
let hear = () => {};
client.setNotificationHandler(ResourceUpdatedNotificationSchema, (n) => { updated.push(n.params.uri); hear(); });
await client.connect(new StdioClientTransport({ command: atm, args: ["mcp", "--as", "bob"], cwd, stderr: "inherit" }));

const call = async (name, args = {}, options) => {
	const r = await client.callTool({ name, arguments: args }, undefined, options);
	say(name, { text: r.content[0].text, document: r.structuredContent, error: r.isError });
};
say("instructions", client.getInstructions());
say("tools", (await client.listTools()).tools.map((t) => t.name + " " + (t.inputSchema.required ?? [])));
say("resources", (await client.listResources()).resources.map((r) => r.uri));
await call("send", { to: "lead", text: "from typescript", subject: "hello" });
await call("send", { to: "led", text: "x" });
await call("team");
await client.subscribeResource({ uri: "atm://inbox" });
const news = new Promise((resolve) => { hear = resolve; });
run("send", "bob", "one for you", "--as", "lead");
await news;
say("updated", updated);
say("inbox", (await client.readResource({ uri: "atm://inbox" })).contents[0].text);
await call("read");
const steps = [];
await call("wait", { timeout: "6s" }, { onprogress: (p) => steps.push(p.message) });
say("progress", steps);
const stop = new AbortController();
const waiting = client.callTool({ name: "wait", arguments: { timeout: "0" } }, undefined, { signal: stop.signal });
stop.abort("enough");
say("aborted", await waiting.then(() => "no", () => "yes"));
await call("search", { words: "typescript" });
say("unread", run("ls", "--count", "--as", "bob"));
await client.close();
