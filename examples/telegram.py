#!/usr/bin/env python3
"""What waits for you, in a Telegram chat: buttons for its options, or a reply that says why not.

    export TELEGRAM_TOKEN=…    # from @BotFather
    export TELEGRAM_CHAT=…     # your user id; the bot hears nobody else
    ATM_AGENT=me python3 telegram.py

Write to the bot first: it cannot begin a chat. Everything that agents ask goes through Telegram's servers.
"""
import json, os, re, signal, subprocess, sys, threading, time, urllib.error, urllib.request

CHAT = int(os.environ["TELEGRAM_CHAT"])
API = os.environ.get("TELEGRAM_API", "https://api.telegram.org") + "/bot" + os.environ["TELEGRAM_TOKEN"] + "/"


def call(method, **fields):
    request = urllib.request.Request(API + method, json.dumps(fields).encode(), {"Content-Type": "application/json"})
    while True:
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return json.load(answer)["result"]
        except OSError as e:  # what is pressed meanwhile is still there later
            print(method, e, file=sys.stderr)
            if isinstance(e, urllib.error.HTTPError) and e.code < 500 and e.code != 429:  # it will never be taken
                return sys.exit(1) if method == "getUpdates" else None
            time.sleep(5)


def show(question):
    """A question without an id has no buttons: by the time one is pressed, the agent may ask something else."""
    verb_of = lambda option: "reject" if option.get("kind", "").startswith("reject") else "approve"
    options = [(o["label"], verb_of(o), str(i)) for i, o in enumerate(question["options"], 1)]
    if question["kind"] == "permission" and not options:
        options = [("Allow", "approve", ""), ("Reject", "reject", "")]
    rows = [[{"text": label, "callback_data": f"{verb} {question['id']} {option}"}] for label, verb, option in options]
    what = f"{question['tool']} {question['prompt'][:3000]}".strip()
    text = f"{question['agent']} asks ({question['kind']}): {what}\n[{question['id'] or '-'}]"
    call("sendMessage", chat_id=CHAT, text=text, reply_markup={"inline_keyboard": rows if question["id"] else []})


def show_all(watch):
    for line in watch.stdout:  # each new question once
        for question in json.loads(line)["pending"]:
            show(question)
    os._exit(watch.wait())


def answer(update):
    """Runs atm approve or reject, and says what came of it. The rights are those of ATM_AGENT."""
    pressed, message = update.get("callback_query", {}), update.get("message", {})
    if (pressed or message).get("from", {}).get("id") != CHAT:
        return
    asked = re.search(r"\[([0-9a-f-]{36})\]\Z", message.get("reply_to_message", {}).get("text", ""))  # the last line is show's
    if pressed:
        call("answerCallbackQuery", callback_query_id=pressed["id"])
        verb, question, option = pressed["data"].split(" ")
        words = [verb, question] + [option] * bool(option)
    elif asked and message.get("text"):
        words = ["reject", asked[1], "--reason=" + message["text"]]
    else:
        return
    done = subprocess.run(["atm"] + words, capture_output=True, text=True)
    call("sendMessage", chat_id=CHAT, text=(done.stdout + done.stderr)[:4000])


offset = 0
watch = subprocess.Popen(["atm", "pending", "--watch", "--json"], stdout=subprocess.PIPE, text=True)
threading.Thread(target=show_all, args=[watch], daemon=True).start()
signal.signal(signal.SIGTERM, signal.default_int_handler)
try:
    while True:
        for update in call("getUpdates", offset=offset, timeout=60):
            offset = update["update_id"] + 1
            answer(update)
except KeyboardInterrupt:
    pass
finally:
    watch.terminate()
