import { spawn } from "node:child_process"

const call = $COMMAND
const agent = call[4] ?? process.env.ATM_AGENT

export const Atm = async ({ directory }) => {
  const seen = new Map(), told = new Map(), children = new Set()
  let queue = Promise.resolve()
  const atm = (args, input = "") => new Promise((done) => {
    let out = ""
    const env = { ...process.env, ...(agent && { ATM_AGENT: agent }) }
    const child = spawn(call[0], args, { cwd: directory, env, stdio: ["pipe", "pipe", "ignore"], timeout: 10_000 })
    child.on("error", () => done(""))
    child.on("close", () => done(out))
    child.stdout.on("data", (data) => { out += data })
    child.stdin.on("error", () => {})
    child.stdin.end(input)
  })
  const repeats = (key, state) => seen.get(key) === state || !seen.set(key, state)
  const passes = ({ type, properties: p = {} }) => {
    const part = p.part?.state?.status, session = p.status?.type
    if (type === "message.part.updated") return p.part?.type === "tool" && part !== "pending" && !repeats(p.part.callID, part)
    if (type === "session.status") return !repeats(p.sessionID, session) || session === "retry"
    return /^(session\.(created|deleted|idle|error)$|permission\.|question\.)/.test(type)
  }
  return {
    event: async ({ event }) => {
      const p = event.properties ?? {}, id = p.sessionID ?? p.part?.sessionID
      if (p.info?.parentID) children.add(p.info.id)
      const input = JSON.stringify(children.has(id) ? { ...event, subagent: true } : event)
      if (passes(event)) await (queue = queue.then(() => atm(call.slice(1), input)))
    },
    "experimental.chat.system.transform": async ({ sessionID }, out) => {
      if (children.has(sessionID) || !agent) return
      if (!told.has(sessionID)) told.set(sessionID, await atm(["primer"]))
      if (told.get(sessionID)) out.system.push(told.get(sessionID))
    },
$ENV  }
}
