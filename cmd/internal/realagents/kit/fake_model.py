#!/usr/bin/env python3
"""A model that is not one: it answers coding agents from a short list.

    fake_model.py [--port N] [--log FILE]

It listens on 127.0.0.1, and prints the port, 18765 or a free one for 0, as its
first line. It speaks what the programs ask for:

    Claude Code   POST /v1/messages                    "anthropic"
    Codex         POST /v1/responses                   "responses"
    opencode      POST /v1/chat/completions            "chat"
    Qwen Code     the same; so do Kilo, Continue, Cline, pi and Copilot
    Gemini CLI    POST …:generateContent, …:stream…    "gemini"

A word in the last thing that the user said chooses the answer:

    DOERROR   HTTP 529 (anthropic) or 500 (the others), every time
    DOLIMIT   refuses: the usage limit is reached, and ends in an hour
    DOTOOL    asks to run touch made.txt, which needs the user's permission
    DOSLEEP   asks to run sleep 6; echo done
    DORUN     asks to run the rest of the line
    DOASK     asks its person which database (anthropic, chat)
    DOPLAN    asks its person to approve a plan (anthropic)
    DOSLOW    nothing for 5 s, then a numbered text for about 3 s
    SAYS      what follows in the message
    ECHO      the user's own text, whole, inside [[ ]]
    (none)    Pong from the fake model.

A tool's result is answered with "All done."

The log has a line a request, written before the answer begins:

    {"api": "anthropic", "kind": "prompt", "user": "ECHO hello", "at": 12.345}

kind is "prompt" for what the user submitted, "retry" for the same again after
DOERROR, "result" when a tool's output came back, and "side" for what the program
asks on its own account (titles and the like: no tools, and a stock phrase as the
answer). "user" is the last user text as the model got it, without the reminders
that programs add in tags of their own; "turn" has all since the model's last
answer, if there are several. "at" is in seconds of the monotonic clock. When a
program hangs up on an answer, which is how it interrupts, a line
{"api": …, "closed": USER} follows.
"""
import argparse
import json
import re
import select
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

THINKING = 5.0  # DOSLOW: seconds before the first word
WORD = 0.08     # DOSLOW: seconds between words

# Tags in which programs wrap what the user did not say.
ASIDE = re.compile(
    r"<(system-reminder|environment_context|user_instructions|session_context|hook_context|environment_details|current_datetime)\b[^>]*>.*?</\1>\s*", re.S)


# ------------------------------------------------------------ what was said

class Said:
    """The end of a conversation: texts since the model last spoke, oldest first."""

    def __init__(self):
        self.texts, self.result = [], False
        self.plan_file, self.has_planned = None, False  # where a plan has to be, and whether the model has just written it

    def add(self, text):
        text = ASIDE.sub("", text)
        if text.strip():
            self.texts.append(text)

    @property
    def user(self):
        return self.texts[-1] if self.texts else ""


def pieces(content):
    """The texts of a content field: a string, or a list of blocks."""
    if isinstance(content, str):
        return [content]
    return [b["text"] for b in content or [] if isinstance(b, dict) and isinstance(b.get("text"), str)]


def tail(messages, is_model):
    """The messages after the last one of the model's."""
    last = max((i for i, m in enumerate(messages) if is_model(m)), default=-1)
    return messages[last + 1:]


def said_anthropic(body):
    said = Said()
    if found := re.search(r'/[^\s"\\\\]+/plans/[^\s"\\\\]+\.md', json.dumps(body.get("messages", []))):
        said.plan_file = found.group(0)
    for m in body.get("messages", []):
        if m.get("role") == "assistant" and isinstance(m.get("content"), list):
            said.has_planned = any(b.get("name") == "Write" for b in m["content"])
    for m in tail(body.get("messages", []), lambda m: m.get("role") == "assistant"):
        if m.get("role") != "user":
            continue
        content = m.get("content")
        if isinstance(content, list) and any(b.get("type") == "tool_result" for b in content):
            said.result = True
        for text in pieces(content):
            said.add(text)
    return said


def said_responses(body):
    said = Said()
    model = ("function_call", "custom_tool_call", "local_shell_call", "reasoning")
    for m in tail(body.get("input", []), lambda m: m.get("role") == "assistant" or m.get("type") in model):
        if str(m.get("type", "")).endswith("_call_output"):
            said.result = True
        elif m.get("role") == "user":
            for text in pieces(m.get("content")):
                said.add(text)
    return said


def said_chat(body):
    said = Said()
    for m in tail(body.get("messages", []), lambda m: m.get("role") == "assistant"):
        if m.get("role") == "tool":
            said.result = True
        elif m.get("role") == "user":
            for text in pieces(m.get("content")):
                said.add(text)
    return said


def said_gemini(body):
    said = Said()
    for m in tail(body.get("contents", []), lambda m: m.get("role") == "model"):
        if any("functionResponse" in p for p in m.get("parts", [])):
            said.result = True
        for text in pieces(m.get("parts")):
            said.add(text)
    return said


# ------------------------------------------------------------ what to answer

class Answer:
    """Text in words, one shell command, another call, an HTTP error, or a usage limit."""

    def __init__(self, text="", command=None, call=None, error=False, limit=False, slow=False):
        self.text, self.command, self.call, self.error, self.limit, self.slow = text, command, call, error, limit, slow

    def words(self):
        return re.findall(r"\S+\s*|\s+", self.text)


def plain(text):
    """The text without the marks that atm types before some characters."""
    return text.replace("$\\", "$").replace("\\@", "@").replace("@\\", "@").replace("\\/", "/")


QUESTIONS = {"questions": [{
    "question": "Which database?", "header": "Database", "multiSelect": False, "options": [
        {"label": "SQLite", "description": "one file"}, {"label": "Postgres", "description": "a server"}]}]}
PLAN = {"plan": "1. build\n2. test"}


def answer(said):
    def word(w, rest=""):
        return re.search(r"\b%s\b%s" % (w, rest), said.user, re.S)

    if said.result and said.has_planned:
        return Answer(call=(("ExitPlanMode",), PLAN))
    if said.result and not said.texts:
        return Answer("All done.")
    if found := word("DORUN", r" ([^\n]*)"):
        return Answer(command=plain(found.group(1)).strip())
    if found := word("SAYS", " (.*)"):
        text = re.sub(r"\s*</pasted_content[^>]*>\s*$", "", found.group(1))  # of the newest Claude Code
        text = plain(text).partition("[/atm]")[0]  # atm ends and indents what it types
        return Answer(re.sub(r"\n  ", "\n", text).strip())
    if word("DOLIMIT"):
        return Answer(limit=True)
    if word("DOERROR"):
        return Answer(error=True)
    if word("DOASK"):
        return Answer(call=(("AskUserQuestion", "question"), QUESTIONS))
    if word("DOPLAN") and said.plan_file:
        return Answer(call=(("Write",), {"file_path": said.plan_file, "content": PLAN["plan"]}))
    if word("DOPLAN"):
        return Answer(call=(("ExitPlanMode",), PLAN))
    if word("DOTOOL"):
        return Answer(command="touch made.txt")
    if word("DOSLEEP"):
        return Answer(command="sleep 6; echo done")
    if word("DOSLOW"):  # no two words alike: Gemini CLI takes repetition for a loop
        return Answer(" ".join("word%d" % n for n in range(1, 41)), slow=True)
    if word("ECHO"):
        return Answer("[[" + said.user + "]]")
    if said.result:
        return Answer("All done.")
    return Answer("Pong from the fake model.")


# ------------------------------------------------------------ how each API says it
#
# Each function is given the request, the answer, and say(data, event=None),
# which sends one server-sent event; pause() waits as the answer asks.

def speak_anthropic(body, a, say, pause):
    def send(kind, **more):
        say({"type": kind, **more}, event=kind)

    send("message_start", message={
        "id": new_id("msg"), "type": "message", "role": "assistant", "model": body.get("model", "fake"),
        "content": [], "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 1}})
    pause(first=True)
    call = a.call or a.command and (("Bash",), {"command": a.command, "description": "Run a command"})
    if call:
        send("content_block_start", index=0, content_block={
            "type": "tool_use", "id": new_id("toolu"), "name": call[0][0], "input": {}})
        send("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": json.dumps(call[1])})
    else:
        send("content_block_start", index=0, content_block={"type": "text", "text": ""})
        for w in a.words():
            send("content_block_delta", index=0, delta={"type": "text_delta", "text": w})
            pause()
    send("content_block_stop", index=0)
    send("message_delta", delta={"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None},
         usage={"output_tokens": 20})
    send("message_stop")


def speak_responses(body, a, say, pause):
    def send(kind, **more):
        say({"type": kind, **more}, event=kind)

    rid = new_id("resp")
    send("response.created", response={"id": rid})
    pause(first=True)
    if a.command:
        names = [t.get("name") for t in body.get("tools", [])]
        # Escalated: so Codex always asks, whatever its sandbox would allow.
        why = {"sandbox_permissions": "require_escalated", "justification": "Run a command"}
        if "exec_command" in names:
            name, args = "exec_command", {"cmd": a.command, **why}
        elif "shell_command" in names:
            name, args = "shell_command", {"command": a.command, **why}
        else:
            name, args = "shell", {"command": ["bash", "-lc", a.command], **why}
        send("response.output_item.done", item={
            "type": "function_call", "id": new_id("fc"), "call_id": new_id("call"), "name": name,
            "arguments": json.dumps(args)})
    else:
        item = {"type": "message", "role": "assistant", "id": new_id("msg")}
        send("response.output_item.added", item={**item, "content": []})
        for w in a.words():
            send("response.output_text.delta", item_id=item["id"], delta=w)
            pause()
        send("response.output_item.done", item={**item, "content": [{"type": "output_text", "text": a.text}]})
    send("response.completed", response={"id": rid, "usage": {
        "input_tokens": 10, "input_tokens_details": None, "output_tokens": 5, "output_tokens_details": None,
        "total_tokens": 15}})


def speak_chat(body, a, say, pause):
    rid = new_id("chatcmpl")

    def send(delta, finish=None):
        say({"id": rid, "object": "chat.completion.chunk", "created": int(time.time()), "model": "fake-model",
             "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    pause(first=True)
    tools = {t.get("function", {}).get("name"): t["function"] for t in body.get("tools", []) if t.get("function")}
    if a.call:
        name = next((n for n in a.call[0] if n in tools), a.call[0][0])
        send({"role": "assistant", "tool_calls": [{
            "index": 0, "id": new_id("call"), "type": "function",
            "function": {"name": name, "arguments": json.dumps(a.call[1])}}]})
        send({}, "tool_calls")
    elif a.command:
        name = next((n for n in ("run_shell_command", "run_commands", "Bash") if n in tools), "bash")
        args = {"command": a.command, "description": "Run a command", "is_background": False}
        if name == "run_commands":
            args = {"commands": [a.command]}
        known = tools.get(name, {}).get("parameters", {}).get("properties", args)
        send({"role": "assistant", "tool_calls": [{
            "index": 0, "id": new_id("call"), "type": "function",
            "function": {"name": name, "arguments": json.dumps({k: v for k, v in args.items() if k in known})}}]})
        send({}, "tool_calls")
    else:
        for w in a.words():
            send({"content": w})
            pause()
        send({}, "stop")
    say("[DONE]")


def gemini_object(parts, finish=None):
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": "fake-model",
            "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 5, "totalTokenCount": 10}}


def speak_gemini(body, a, say, pause):
    pause(first=True)
    if a.command:
        say(gemini_object([{"functionCall": {"name": "run_shell_command", "args": {
            "command": a.command, "description": "Run a command"}}}], "STOP"))
    else:
        for w in a.words():
            say(gemini_object([{"text": w}]))
            pause()
        say(gemini_object([{"text": ""}], "STOP"))


# Whole answers for what programs ask on their own account, without streaming.
STOCK = {
    "anthropic": {"id": "msg_side", "type": "message", "role": "assistant", "model": "fake", "stop_reason": "end_turn",
                  "content": [{"type": "text", "text": '{"title":"fake title"}'}],
                  "usage": {"input_tokens": 1, "output_tokens": 1}},
    "responses": {"id": "resp_side", "object": "response", "status": "completed", "output": []},
    "chat": {"id": "side", "object": "chat.completion", "model": "fake-model",
             "choices": [{"index": 0, "message": {"role": "assistant", "content": "Title"}, "finish_reason": "stop"}],
             "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}},
    "gemini": gemini_object([{"text": json.dumps({
        "reasoning": "x", "model_choice": "flash", "next_speaker": "user", "complexity_score": 1,
        "complexity_reasoning": "x"})}], "STOP"),
}

APIS = {
    "anthropic": (said_anthropic, speak_anthropic),
    "responses": (said_responses, speak_responses),
    "chat": (said_chat, speak_chat),
    "gemini": (said_gemini, speak_gemini),
}


def api_of(path):
    path = path.split("?")[0]
    if path.endswith("/messages"):
        return "anthropic"
    if path.endswith("/responses"):
        return "responses"
    if path.endswith("/chat/completions"):
        return "chat"
    if path.endswith(":generateContent") or path.endswith(":streamGenerateContent"):
        return "gemini"
    return None


# ------------------------------------------------------------ the server

class HungUp(Exception):
    pass


_ids = iter(range(1, 1 << 60))


def new_id(prefix):
    return "%s_%d_%d" % (prefix, int(time.time()), next(_ids))


class Log:
    def __init__(self, path):
        self.file = open(path, "a", encoding="utf-8") if path else None
        self.lock = threading.Lock()

    def write(self, **line):
        if self.file:
            with self.lock:
                self.file.write(json.dumps(line, ensure_ascii=False) + "\n")
                self.file.flush()


class Handler(BaseHTTPRequestHandler):
    log = None       # set by main
    failed = set()   # conversations that were answered with an error

    def log_message(self, *args):
        pass

    def do_HEAD(self):
        self.send_response(200)
        self.end_headers()

    def do_GET(self):  # lists of models
        self.send_json({"object": "list", "data": [{"id": "fake-model", "object": "model"}], "models": []})

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(raw)
        except ValueError:
            body = {}
        api = api_of(self.path)
        if api is None:  # counting tokens, telemetry, and whatever else
            return self.send_json({"input_tokens": 10, "totalTokens": 10})
        said = APIS[api][0](body)
        kind = "side" if not body.get("tools") else "prompt" if said.texts else "result"
        key = hash((api, json.dumps([body.get(k) for k in ("messages", "input", "contents")])))
        if kind == "prompt" and key in self.failed:
            kind = "retry"
        if kind == "prompt" and answer(said).error:
            self.failed.add(key)
        more = {"turn": said.texts} if len(said.texts) > 1 else {}
        self.log.write(api=api, kind=kind, user=said.user, at=round(time.monotonic(), 3), **more)
        try:
            self.reply(api, kind, body, said)
        except (HungUp, BrokenPipeError, ConnectionResetError):
            self.log.write(api=api, closed=said.user)

    def reply(self, api, kind, body, said):
        streaming = ":stream" in self.path if api == "gemini" else body.get("stream")
        if not streaming:
            return self.send_json(STOCK[api])
        a = answer(said) if kind != "side" else Answer("fake title")
        if a.error:
            code = 529 if api == "anthropic" else 500
            return self.send_json({"type": "error", "error": {
                "type": "overloaded_error", "code": code, "message": "the fake model was asked to fail"}}, code)
        if a.limit:
            return self.refuse(api)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()

        def say(data, event=None):
            head = "event: %s\n" % event if event else ""
            text = data if isinstance(data, str) else json.dumps(data)
            self.wfile.write(("%sdata: %s\n\n" % (head, text)).encode())
            self.wfile.flush()

        def pause(first=False):
            if a.slow:
                self.wait(THINKING if first else WORD)

        APIS[api][1](body, a, say, pause)

    def refuse(self, api):
        """The usage limit is reached, until in an hour."""
        end = int(time.time()) + 3600
        error = {"type": "rate_limit_error", "message": "the limit is reached"}
        if api == "responses":
            error = {"type": "usage_limit_reached", "message": "the limit is reached", "plan_type": "plus", "resets_at": end}
        limit = {
            "status": "rejected", "reset": end, "representative-claim": "five_hour", "5h-status": "rejected",
            "5h-reset": end, "5h-utilization": "1.0", "overage-status": "rejected",
            "overage-disabled-reason": "out_of_credits"}
        headers = {"anthropic-ratelimit-unified-" + name: value for name, value in limit.items()}
        self.send_json({"type": "error", "error": error}, 429, {**headers, "x-should-retry": "false"})

    def wait(self, seconds):
        """Sleeps; raises HungUp as soon as the program closes the connection."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.connection], [], [], left)[0]:
                if not self.connection.recv(1, socket.MSG_PEEK):
                    raise HungUp
                time.sleep(min(left, 0.05))

    def send_json(self, data, code=200, headers={}):
        raw = json.dumps(data).encode()
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--port", type=int, default=18765)
    args.add_argument("--log", metavar="FILE")
    args = args.parse_args()
    Handler.log = Log(args.log)
    server = Server(("127.0.0.1", args.port), Handler)
    print(server.server_address[1], flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
