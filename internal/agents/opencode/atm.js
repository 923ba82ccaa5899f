import { spawn } from "node:child_process"
import { watch } from "node:fs"
import { isMainThread } from "node:worker_threads"

const atm = $COMMAND
const isBrought = atm.includes("--brought") // by atm run, which makes an installed one silent
const agent = isBrought ? process.env.ATM_AGENT : atm[4] ?? process.env.ATM_AGENT
// The program with a screen runs its plugins in a worker; run, serve and acp do not, and get no mail.
const pushes = !isMainThread && !!agent

const asks = /^(permission|question)\.asked$/, isAnswered = /^(permission\.replied|question\.(replied|rejected))$/
const sessionOf = ({ properties: p = {} }) => p.sessionID ?? p.part?.sessionID ?? p.info?.id

export const Atm = async ({ client, directory }) => {
  if (!isBrought && process.env.ATM_HOOKS?.endsWith(".js")) return {}
  const seen = new Map(), told = new Map(), children = new Set(), asking = new Map()
  let queue = Promise.resolve()
  const start = (args, input, timeout) => {
    const env = { ...process.env, ...(agent && { ATM_AGENT: agent }) }
    const child = spawn(atm[0], args, { cwd: directory, env, stdio: ["pipe", "pipe", "ignore"], timeout })
    const output = new Promise((done) => {
      let out = ""
      child.on("error", () => done(""))
      child.on("close", () => done(out))
      child.stdout.on("data", (data) => { out += data })
    })
    child.stdin.on("error", () => {})
    child.stdin.end(input)
    return { child, output }
  }
  const run = (args, input = "") => start(args, input, 10_000).output
  const call = (event) => JSON.stringify({ ...event, ...(pushes && { pushes }), ...(children.has(sessionOf(event)) && { subagent: true }),
    ...(/^session\.(status|idle)$/.test(event.type) && wordsOf(event)) })
  const tell = (event) => run(atm.slice(1), call(event))
  // What was told last of a session, and of each of its tool calls until it is idle.
  const repeats = (id, key, state) => {
    if (!seen.has(id)) seen.set(id, new Map())
    return seen.get(id).get(key) === state || !seen.get(id).set(key, state)
  }
  const passes = ({ type, properties: p = {} }) => {
    const part = p.part?.state?.status, session = p.status?.type, id = sessionOf({ properties: p })
    if (type === "session.idle") seen.get(id)?.clear(), repeats(id, "status", "idle")
    if (type === "session.deleted") seen.delete(id)
    // That a call runs may be told behind its question: it would count as the answer.
    if (asks.test(type)) asking.set(p.id, p.tool?.callID)
    if (isAnswered.test(type)) asking.delete(p.requestID)
    if (part === "running" && [...asking.values()].includes(p.part.callID)) return false
    if (type === "message.part.updated") return p.part?.type === "tool" && part !== "pending" && !repeats(id, p.part.callID, part)
    if (type === "session.status") return !repeats(id, "status", session) || session === "retry"
    return /^(session\.(created|deleted|idle|error)$|permission\.|question\.)/.test(type)
  }

  // The last prompt of each session, and the newest text of the answer to it.
  const words = new Map()
  const wordsOf = (event) => { const { prompt, answer } = words.get(sessionOf(event)) ?? {}; return { prompt, answer } }
  const listen = (event) => {
    const { type, properties: p = {} } = event, id = sessionOf(event), w = words.get(id) ?? {}
    if (type === "session.deleted") words.delete(id)
    if (type === "message.updated") {
      if (p.info.role === "user" && p.info.id !== w.user) w.prompt = w.answer = ""
      words.set(id, { ...w, [p.info.role]: p.info.id })
    }
    if (type !== "message.part.updated" || p.part?.type !== "text" || p.part.synthetic) return
    if (p.part.messageID === w.user) w.prompt ||= p.part.text
    if (p.part.messageID === w.assistant) w.answer = p.part.text
  }

  // The session that the person was last seen in gets the mail. "": the program shows none, so one is made and shown,
  // which keeps what stands in the box. undefined: not known yet.
  let session, prompt
  const opened = async (args) => {
    const find = (...flags) => args.findIndex((arg) => flags.includes(arg.split("=")[0]))
    const id = find("--session", "-s")
    if (find("--fork") >= 0) return undefined
    if (id >= 0) return args[id].split("=")[1] ?? args[id + 1]
    if (find("--continue", "-c") < 0) return ""
    const all = (await client.session.list({ throwOnError: true })).data.filter((s) => !s.parentID)
    return all.sort((a, b) => b.time.updated - a.time.updated)[0]?.id ?? ""
  }
  // How the person last asked there, so that mail does not leave the mode plan.
  const mode = async (id) => {
    if (prompt?.sessionID !== id) prompt = (await client.session.messages({ path: { id } })).data?.findLast((m) => m.info.role === "user")?.info
    return prompt && { agent: prompt.agent, model: prompt.model, variant: prompt.model?.variant }
  }
  // Without an answer it was not recorded: a lock may have been held for too long.
  const receive = async (shown, tries = 5) => {
    if ((await tell(shown)) || tries === 1) return
    setTimeout(() => receive(shown, tries - 1), 2000)
  }
  // Keeps in mind where the person is, and tells what the model got.
  const follow = (event) => {
    const { type, properties: p = {} } = event, id = sessionOf(event)
    if (children.has(id)) return
    if (type === "session.deleted" && id === session) session = ""
    if (type === "session.created" || type === "session.status" && p.status.type === "busy") session = id
    if (type === "message.updated" && p.info.role === "user" && id === session) prompt = p.info
    if (type === "message.part.updated" && given.delete(p.part?.text)) queued.set(p.part.messageID, p.part)
    if (type === "message.updated" && p.info.role === "assistant") answers.set(p.info.id, { id, parent: p.info.parentID })
    for (const [answer, about] of answers) {
      if (p.part?.messageID !== answer && !(type === "session.idle" && about.id === id)) continue
      for (const [message, { text }] of queued) {
        if (message > about.parent || !queued.delete(message)) continue
        queue = queue.then(() => receive({ type: "atm.shown", properties: { sessionID: id }, text })) // within its turn
      }
      answers.delete(answer)
    }
    if (type === "session.idle") queue.then(() => giveBack(id))
    if (session !== hidden) hidden = undefined
    if (type === "session.idle" && id === hidden) show().finally(() => { hidden = undefined })
    if (/^session\.(created|idle|deleted)$/.test(type)) lookSoon()
  }

  // A text given to a session is queued there, and received when the model begins an answer to it or to a later prompt. An
  // answer is there before the model is asked: it has begun with its first part, or is over without one.
  const given = new Set(), queued = new Map(), answers = new Map()
  const push = async (id, text) => {
    const body = { ...(await mode(id)), parts: [{ type: "text", text }] }
    if (id === session) {
      given.add(text)
      const error = await client.session.promptAsync({ path: { id }, body }).then((r) => r.error, (error) => error)
      if (!error) return
      given.delete(text)
      session = ""
    } else { // the person has begun another since it was asked for
      lookSoon()
    }
    await tell({ type: "atm.refused", properties: { sessionID: id } })
  }
  // What the model did not get before its turn was over, as after a rejection, is taken out of the session and given anew. A
  // busy session keeps it.
  const giveBack = async (id) => {
    let isBack = false
    for (const [message, part] of queued) {
      if (part.sessionID !== id) continue
      const error = await client._client.delete({ url: `/session/${id}/message/${message}` }).then((r) => r.error, (error) => error)
      if (!error) isBack = queued.delete(message)
    }
    if (!isBack) return
    await tell({ type: "atm.refused", properties: { sessionID: id } })
    lookSoon()
  }
  const watchers = new Map()
  let looks = pushes && new Promise((done) => setTimeout(done, 1000)) // until there is a screen
  let isNew = true, isAsked = false, isOver = false, again = 0, hidden, timer
  // No event tells when the screen is there to show it, so it is told once more when the first turn ends.
  const show = async () => hidden && client.tui.publish({ body: { type: "tui.session.select", properties: { sessionID: hidden } } })
  const look = async () => {
    isAsked = false
    if (isOver) return
    try {
      let to
      const ask = async () => JSON.parse(await tell({ type: "atm.mail", isNew, properties: { sessionID: to = session } }))
      let answer = await ask()
      watchAll(answer.watch ?? [])
      if (session === undefined && answer.arguments) {
        const id = await opened(answer.arguments)
        if (id && session === undefined) await tell({ type: "atm.resumed", properties: { sessionID: id } })
        session ??= id
      }
      if (session && answer.waiting) answer = await ask()
      if (answer.waiting && session === "") {
        const made = (await client.session.create({ body: {}, throwOnError: true })).data.id
        session ||= made // else the person has just begun one
        hidden = made
        answer = await ask()
      }
      isNew &&= !session
      if (answer.text) await push(to, answer.text)
      if (answer.text && session === hidden) await show()
    } catch {
      again = 2 // who was killed at the answer has the mail for 10 s
    }
    if (watchers.size && again-- > 0) lookLater()
  }
  const lookLater = () => { clearTimeout(timer); timer = setTimeout(lookSoon, 6000) }
  const lookSoon = () => {
    if (!pushes || isAsked) return
    isAsked = true
    looks = looks.then(() => queue).then(look)
  }
  const watchAll = (dirs) => {
    for (const dir of dirs.filter((dir) => !watchers.has(dir))) {
      try {
        const watcher = watch(dir, lookSoon)
        watcher.on("error", () => { watchers.delete(dir); lookLater() })
        watchers.set(dir, watcher)
        lookSoon() // at what came before
      } catch {
        lookLater()
      }
    }
  }

  // A call for each permission and question asked waits for an answer from elsewhere, until the person answers.
  const asked = new Map()
  const waitForAnswer = (event) => {
    const { id } = event.properties
    const waiting = start(atm.slice(1), call(event))
    asked.set(id, waiting)
    waiting.output.then(async (out) => {
      asked.delete(id)
      if (!out) return
      // The client has no method that takes a message with the reply, and none for a question.
      await client._client.post({ url: `/${event.type.split(".")[0]}/${id}/reply`, body: JSON.parse(out), headers: { "Content-Type": "application/json" } })
    }).catch(() => {})
  }
  const endWait = (id) => {
    asked.get(id)?.child.kill()
    return asked.get(id)?.output
  }

  lookSoon()
  return {
    dispose: async () => {
      isOver = true
      clearTimeout(timer)
      for (const watcher of watchers.values()) watcher.close()
      for (const id of asked.keys()) endWait(id)
    },
    event: async ({ event }) => {
      const { type, properties: p = {} } = event
      if (/^session/.test(type) && p.info?.parentID) children.add(p.info.id)
      listen(event)
      if (pushes) follow(event)
      if (!passes(event)) return
      await (queue = queue.then(async () => {
        if (asks.test(type) && pushes) return waitForAnswer(event)
        if (isAnswered.test(type)) await endWait(p.requestID)
        await tell(event)
      }))
    },
    "experimental.chat.system.transform": async ({ sessionID }, out) => {
      if (children.has(sessionID) || !agent) return
      if (!told.has(sessionID)) told.set(sessionID, await queue.then(() => run(["primer"])))
      if (told.get(sessionID)) out.system.push(told.get(sessionID))
    },
    // A program that the agent starts in its shell is not the agent: its hooks do nothing.
    "shell.env": async (_, out) => agent && Object.assign(out.env, { ATM_AGENT: agent, ATM_SHELL_OF: agent }),
  }
}
