// The TypeScript SDK's client, as an editor that talks to bob: acp.mjs ATM DIR
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [atm, cwd] = process.argv.slice(2);
const say = (what, value) => console.log(what + " " + JSON.stringify(value));
const { agent: call, client: hear } = acp.methods;
let text, user, allow, whenAsked = () => {};

// editor runs an atm acp of its own, in which it does something.
async function editor(op) {
	const process = spawn(atm, ["acp", "bob", "--as", "lead"], { cwd, stdio: ["pipe", "pipe", "inherit"] });
	const ended = new Promise((resolve) => process.on("exit", resolve));
	text = user = "";
	await acp.client({ name: "editor" })
		.onNotification(hear.session.update, ({ params: { update: u } }) => {
			if (u.sessionUpdate === "agent_message_chunk") text += u.content.text;
			if (u.sessionUpdate === "user_message_chunk") user += u.content.text;
		})
		.onRequest(hear.session.requestPermission, ({ params }) => {
			say("asked", params.toolCall.title);
			whenAsked();
			const option = params.options.find((o) => o.kind === allow);
			return { outcome: option ? { outcome: "selected", optionId: option.optionId } : { outcome: "cancelled" } };
		})
		.connectWith(acp.ndJsonStream(Writable.toWeb(process.stdin), Readable.toWeb(process.stdout)), async (ctx) => {
			const hello = await ctx.request(call.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
			say("initialize", [hello.protocolVersion, hello.agentInfo.title, hello.agentCapabilities.loadSession]);
			await op(ctx);
		});
	process.stdin.end();
	say("ended", await ended);
}

let sessionId;
const prompt = async (ctx, words) => {
	text = "";
	const { stopReason } = await ctx.request(call.session.prompt, { sessionId, prompt: [{ type: "text", text: words }] });
	say(stopReason, text);
};
await editor(async (ctx) => {
	({ sessionId } = await ctx.request(call.session.new, { cwd, mcpServers: [] }));
	await prompt(ctx, "ECHO from typescript");
	allow = "allow_once";
	await prompt(ctx, "DOTOOL please");
	const slow = prompt(ctx, "DOSLOW words");
	setTimeout(() => ctx.notify(call.session.cancel, { sessionId }), 3000);
	await slow;
});
await editor(async (ctx) => {
	await ctx.request(call.session.load, { sessionId, cwd, mcpServers: [] });
	say("loaded", [user, text]);
});
