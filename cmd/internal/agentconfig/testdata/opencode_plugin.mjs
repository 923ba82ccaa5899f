// Runs atm's plugin for opencode, which the first argument names, as opencode does, with a client that is none. The
// plugin calls the program beside this test's directory, the second argument, which writes its input to "calls" there and
// answers with what is in "mail", "look" or "answer".
import assert from "node:assert/strict"
import { mkdirSync, readFileSync, writeFileSync, renameSync, existsSync, rmSync } from "node:fs"
import { Worker, isMainThread, workerData } from "node:worker_threads"

if (isMainThread) {
  const [plugin, dir, what] = process.argv.slice(2)
  if (what === "main") {
    await headless(plugin, dir)
  } else {
    new Worker(new URL(import.meta.url), { workerData: { plugin, dir, what } }).on("error", (error) => { console.error(error); process.exit(1) })
  }
} else {
  await ({ resumed, killed, moved, worker: inWorker })[workerData.what](workerData)
  process.exit(0)
}

// put writes a file that a call may just be reading.
function put(path, data) {
  writeFileSync(path + ".new", data)
  renameSync(path + ".new", path)
}

function calls(dir, type) {
  const lines = existsSync(dir + "/calls") ? readFileSync(dir + "/calls", "utf8").split("\n").slice(0, -1) : [] // the last may be half written
  return lines.map((line) => JSON.parse(line)).filter((call) => !type || call.type === type)
}

async function until(what, is) {
  for (const end = Date.now() + 60_000; ; await new Promise((done) => setTimeout(done, 20))) {
    const value = is()
    if (value) return value
    assert(Date.now() < end, "timed out: " + what)
  }
}

function fake(done) {
  return {
    session: {
      list: async () => ({ data: [{ id: "ses_older", time: { updated: 1 } }, { id: "ses_old", time: { updated: 2 } }, { id: "ses_child", parentID: "ses_old", time: { updated: 3 } }] }),
      create: async () => { done.push(["create"]); return { data: { id: "ses_made" } } },
      messages: async () => ({ data: [{ info: { role: "user", sessionID: "ses_made", agent: "plan", model: { modelID: "m" } } }] }),
      promptAsync: async (o) => { done.push(["prompt", o.path.id, o.body]); return { error: o.body.parts[0].text.includes("refuse") ? {} : undefined } },
    },
    tui: { publish: async (o) => { done.push([o.body.type, o.body.properties.sessionID]) } },
    _client: {
      post: async (o) => { done.push(["reply", o.url, o.body]) },
      delete: async (o) => { done.push(["delete", o.url]); return { error: o.url.includes("busy") ? {} : undefined } },
    },
  }
}

async function headless(plugin, dir) {
  const maps = []
  globalThis.Map = class extends Map { constructor(...args) { super(...args); maps.push(this) } }
  const done = [], { Atm } = await import(plugin)
  const hooks = await Atm({ client: fake(done), directory: dir })
  await hooks.event({ event: { type: "session.created", properties: { info: { id: "ses_1" } } } })
  await hooks.event({ event: { type: "permission.asked", properties: { id: "per_1", sessionID: "ses_1" } } })
  assert.deepEqual(calls(dir).map((call) => [call.type, call.pushes]), [["session.created", undefined], ["permission.asked", undefined]])
  assert.deepEqual(done, [])

  // It tells each state of a tool call once, and forgets the calls of a turn that is over.
  await hooks.event({ event: { type: "permission.replied", properties: { requestID: "per_1", sessionID: "ses_1" } } })
  const tell = (callID, status) => hooks.event({ event: { type: "message.part.updated", properties: { sessionID: "ses_1", part: { type: "tool", callID, state: { status } } } } })
  for (let i = 0; i < 5; i++) for (const status of ["running", "running", "completed", "completed"]) await tell("call_" + i, status)
  assert.equal(calls(dir, "message.part.updated").length, 10)
  await hooks.event({ event: { type: "session.idle", properties: { sessionID: "ses_1" } } })
  assert(maps.reduce((n, map) => n + map.size, 0) < 5)

  // Where atm run has brought one to opencode, an installed one is silent.
  process.env.ATM_HOOKS = "/run/hooks/claude.json"
  assert((await Atm({ client: fake(done), directory: dir })).event)
  process.env.ATM_HOOKS = "/run/hooks/opencode.js"
  assert.deepEqual(await Atm({ client: fake(done), directory: dir }), {})
}

// The newest session that is no sub-agent's is the one that --continue opens.
async function resumed({ plugin, dir }) {
  const done = [], { Atm } = await import(plugin), watch = [dir]
  put(dir + "/look", JSON.stringify({ watch, waiting: true, arguments: ["opencode", "--continue"] }))
  put(dir + "/mail", JSON.stringify({ watch, text: "[atm] hello" }))
  await Atm({ client: fake(done), directory: dir })
  await until("the prompt", () => done.length)
  assert.deepEqual(done.map(([what, id]) => [what, id]), [["prompt", "ses_old"]])
  assert.equal(calls(dir, "atm.resumed")[0].properties.sessionID, "ses_old")
  assert(calls(dir, "atm.mail").find((call) => call.properties.sessionID === "ses_old").isNew)
}

// It asks again after a call that was killed, also if another one finds the mail still claimed.
async function killed({ plugin, dir }) {
  const done = [], { Atm } = await import(plugin), watch = [dir + "/inbox"], wait = globalThis.setTimeout
  globalThis.setTimeout = (f, ms) => wait(f, ms < 5000 ? ms : ms / 20)
  mkdirSync(watch[0])
  put(dir + "/look", JSON.stringify({ watch, arguments: ["opencode", "--session", "ses_1"] }))
  await Atm({ client: fake(done), directory: dir })
  await until("the looks at the start", () => calls(dir, "atm.mail").length > 1)
  writeFileSync(dir + "/broken", "")
  writeFileSync(watch[0] + "/1", "")
  const before = await until("the call", () => !existsSync(dir + "/broken") && calls(dir, "atm.mail").length)
  await until("the next call", () => calls(dir, "atm.mail").length > before)
  put(dir + "/mail", JSON.stringify({ watch, text: "[atm] hello" }))
  await until("the mail", () => done.length)
}

// Mail that was claimed for a session which the person has left meanwhile goes to the one where the person is.
async function moved({ plugin, dir }) {
  const done = [], { Atm } = await import(plugin), watch = [dir + "/inbox"]
  mkdirSync(watch[0])
  put(dir + "/look", JSON.stringify({ watch, waiting: true, arguments: ["opencode"] }))
  put(dir + "/mail", JSON.stringify({ watch, text: "[atm] hello" }))
  writeFileSync(dir + "/held", "")
  const hooks = await Atm({ client: fake(done), directory: dir })
  await until("the call", () => calls(dir, "atm.mail").find((call) => call.properties.sessionID === "ses_made"))
  await hooks.event({ event: { type: "session.created", properties: { info: { id: "ses_person" } } } })
  rmSync(dir + "/held")
  assert.equal((await until("the refusal", () => calls(dir, "atm.refused")[0])).properties.sessionID, "ses_made")
  put(dir + "/mail", JSON.stringify({ watch, text: "[atm] hello" }))
  writeFileSync(watch[0] + "/1", "")
  await until("the prompt", () => done.length > 1)
  assert.deepEqual(done.map(([what, id]) => [what, id]), [["create", undefined], ["prompt", "ses_person"]])
}

async function inWorker({ plugin, dir }) {
  const inbox = dir + "/inbox", done = [], { Atm } = await import(plugin)
  const deliver = (text, name) => {
    put(dir + "/look", JSON.stringify({ watch: [inbox], waiting: true }))
    put(dir + "/mail", JSON.stringify({ watch: [inbox], text }))
    writeFileSync(inbox + "/" + name, "")
  }
  const prompts = () => done.filter(([what]) => what === "prompt")
  mkdirSync(inbox)
  put(dir + "/look", JSON.stringify({ watch: [inbox], arguments: ["opencode", "--model", "m"] }))
  const hooks = await Atm({ client: fake(done), directory: dir })
  const event = (type, properties) => hooks.event({ event: { type, properties } })

  // Without mail there is no session. With some there is one, which is shown with the mail in it, in the mode of its last prompt.
  await until("the first look", () => calls(dir, "atm.mail").length > 1) // at the start, and behind the watch
  assert.deepEqual(done, [])
  deliver("[atm] first", "1")
  await until("the session to be shown", () => done.length === 3)
  assert.deepEqual(done, [["create"],
    ["prompt", "ses_made", { agent: "plan", model: { modelID: "m" }, variant: undefined, parts: [{ type: "text", text: "[atm] first" }] }],
    ["tui.session.select", "ses_made"]])

  // It is received when the model begins an answer to it or to a later prompt, and not before.
  await event("session.created", { info: { id: "ses_made" } })
  await event("session.idle", { sessionID: "ses_made" })
  assert.deepEqual(done.slice(3), [["tui.session.select", "ses_made"]]) // the screen may not have been there before
  await event("session.idle", { sessionID: "ses_made" })
  assert.equal(done.length, 4)
  await event("message.part.updated", { sessionID: "ses_made", part: { type: "text", sessionID: "ses_made", messageID: "msg_2", text: "[atm] first" } })
  await event("message.updated", { sessionID: "ses_made", info: { role: "assistant", id: "msg_3", parentID: "msg_1" } })
  assert.deepEqual(calls(dir, "atm.shown"), [])
  await event("message.updated", { sessionID: "ses_made", info: { role: "assistant", id: "msg_4", parentID: "msg_3" } })
  assert.deepEqual(calls(dir, "atm.shown"), []) // the model has not been asked
  await event("message.part.updated", { sessionID: "ses_made", part: { type: "step-start", sessionID: "ses_made", messageID: "msg_4" } })
  assert.deepEqual((await until("the receipt", () => calls(dir, "atm.shown")[0])).text, "[atm] first")
  await until("the receipt again, which nobody has recorded", () => calls(dir, "atm.shown").length === 2)

  // When a turn begins it tells the prompt, and at the end the answer.
  const text = (messageID, text) => event("message.part.updated", { sessionID: "ses_made", part: { type: "text", messageID, text } })
  const turn = () => { const { prompt, answer } = calls(dir, "session.status").at(-1); return [prompt, answer] }
  await event("message.updated", { sessionID: "ses_made", info: { role: "user", id: "msg_5" } })
  await text("msg_5", "hello")
  await event("session.status", { sessionID: "ses_made", status: { type: "busy" } })
  assert.deepEqual(turn(), ["hello", ""])
  for (const part of ["w", "word", "the answer"]) {
    await event("message.updated", { sessionID: "ses_made", info: { role: "assistant", id: "msg_6", parentID: "msg_5" } })
    await text("msg_6", part)
  }
  await event("session.status", { sessionID: "ses_made", status: { type: "idle" } })
  assert.deepEqual(turn(), ["hello", "the answer"])

  const out = { env: { HOME: "/" } }
  await hooks["shell.env"]({}, out)
  assert.deepEqual(out.env, { HOME: "/", ATM_AGENT: "bob", ATM_SHELL_OF: "bob" })

  // It follows the person to another session, and not into a sub-agent's.
  await event("session.status", { sessionID: "ses_2", status: { type: "busy" } })
  await event("session.created", { info: { id: "ses_child", parentID: "ses_2" } })
  await event("session.status", { sessionID: "ses_child", status: { type: "busy" } })
  assert.equal(calls(dir, "session.status").at(-1).subagent, true)
  deliver("[atm] second", "2")
  await until("the second prompt", () => prompts().length === 2)
  assert.equal(prompts()[1][1], "ses_2")

  // What the model got is told within its turn.
  put(dir + "/slow", "")
  await event("message.part.updated", { sessionID: "ses_2", part: { type: "text", sessionID: "ses_2", messageID: "msg_s1", text: "[atm] second" } })
  await event("message.updated", { sessionID: "ses_2", info: { role: "assistant", id: "msg_s2", parentID: "msg_s1" } })
  await event("session.idle", { sessionID: "ses_2" })
  assert.equal(calls(dir, "atm.shown").at(-1).text, "[atm] second")
  assert.equal(calls(dir).filter(({ type }) => type !== "atm.mail").at(-1).type, "session.idle")
  rmSync(dir + "/slow")

  // What a session does not take, it says.
  deliver("[atm] refuse", "3")
  assert.equal((await until("the refusal", () => calls(dir, "atm.refused")[0])).properties.sessionID, "ses_2")

  // What the model did not get before the turn was over is taken out, and asked for again. A busy session keeps it.
  deliver("[atm] third", "4")
  await until("the third prompt", () => prompts().length === 4)
  const third = (messageID) => event("message.part.updated", { part: { type: "text", sessionID: "ses_2", messageID, text: "[atm] third" } })
  const taken = () => done.filter(([what]) => what === "delete")
  await third("msg_busy")
  await event("session.idle", { sessionID: "ses_made" })
  assert.deepEqual(taken(), [])
  await event("session.idle", { sessionID: "ses_2" })
  await until("the refusal to take it out", () => taken().length === 1)
  assert.equal(calls(dir, "atm.refused").length, 1)
  await event("message.updated", { sessionID: "ses_2", info: { role: "assistant", id: "msg_z", parentID: "msg_busy" } })
  deliver("[atm] third", "5")
  await until("the prompt again", () => prompts().length === 5)
  await third("msg_queued")
  put(dir + "/mail", JSON.stringify({ watch: [inbox], text: "[atm] third, may be a repeat" }))
  await event("session.idle", { sessionID: "ses_2" })
  await until("the mail again", () => prompts().length === 6)
  await until("the refusal of the third", () => calls(dir, "atm.refused").length === 2) // a look at the end of a turn waits for none
  assert.deepEqual(taken().at(-1), ["delete", "/session/ses_2/message/msg_queued"])

  // An answer from elsewhere is given; the person's ends the wait for one.
  put(dir + "/answer", JSON.stringify({ reply: "reject", message: "no" }))
  await event("permission.asked", { id: "per_1", sessionID: "ses_2" })
  const reply = await until("the reply", () => done.find(([what]) => what === "reply"))
  assert.deepEqual(reply, ["reply", "/permission/per_1/reply", { reply: "reject", message: "no" }])
  rmSync(dir + "/answer")
  await event("permission.asked", { id: "per_2", sessionID: "ses_2", tool: { callID: "call_2" } })
  await event("message.part.updated", { sessionID: "ses_2", part: { type: "tool", callID: "call_2", state: { status: "running" } } })
  assert.deepEqual(calls(dir, "message.part.updated"), [])
  await until("the wait", () => calls(dir, "permission.asked").length === 2)
  await event("permission.replied", { requestID: "per_2", sessionID: "ses_2" })
  assert.equal(calls(dir).at(-1).type, "permission.replied")
  assert.equal(done.filter(([what]) => what === "reply").length, 1)

  // So it is with a question.
  put(dir + "/answer", JSON.stringify({ answers: [["SQLite"]] }))
  const questions = [{ question: "Which database?", header: "DB", options: [{ label: "SQLite", description: "" }] }]
  await event("question.asked", { id: "que_1", sessionID: "ses_2", questions })
  const chosen = await until("the answer", () => done.filter(([what]) => what === "reply")[1])
  assert.deepEqual(chosen, ["reply", "/question/que_1/reply", { answers: [["SQLite"]] }])
  rmSync(dir + "/answer")
  for (const [id, type] of [["que_2", "question.replied"], ["que_3", "question.rejected"]]) {
    const waits = calls(dir, "question.asked").length
    await event("question.asked", { id, sessionID: "ses_2", questions, tool: { messageID: "msg_z", callID: "call_" + id } })
    await event("message.part.updated", { sessionID: "ses_2", part: { type: "tool", tool: "question", callID: "call_" + id, state: { status: "running" } } })
    assert.deepEqual(calls(dir, "message.part.updated"), [])
    await until("the wait", () => calls(dir, "question.asked").length === waits + 1)
    await event(type, { requestID: id, sessionID: "ses_2" })
    assert.equal(calls(dir).at(-1).type, type)
  }
  assert.equal(done.filter(([what]) => what === "reply").length, 2)
  await hooks.dispose()
}
