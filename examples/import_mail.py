#!/usr/bin/env python3
"""Brings mail of other tools into inboxes: of an mbox file, a Maildir, or an AMQ store.

    export ATM_AGENT=me                                          # who sends what no member has written
    python3 import_mail.py ~/Maildir bob                         # to bob
    python3 import_mail.py old.mbox bob carol@example.org=carol  # what has this address comes from carol
    python3 import_mail.py .agent-mail                           # AMQ: from and to the members of its agents' names

The id of a message is made of its date and its Message-ID. So mail stands in its order and in its threads, and what is
imported again is sent no second time. Who wrote it, and when, stands above the text.
"""
import datetime, email, email.policy, email.utils, glob, hashlib, json, mailbox, os, re, subprocess, sys

path, words = sys.argv[1], sys.argv[2:]
to, names = [w for w in words if "=" not in w], dict(w.lower().split("=") for w in words if "=" in w)


def new_id(key, date):
    """A UUIDv7: 48 bits of time, and for the rest a hash."""
    h = int.from_bytes(hashlib.sha256(key.encode()).digest()[:10], "big")
    n = f"{int(date.timestamp() * 1000) << 80 | 7 << 76 | (h >> 64 & 0xFFF) << 64 | 2 << 62 | h & (1 << 62) - 1:032x}"
    return "-".join((n[:8], n[8:12], n[12:16], n[16:20], n[20:]))


def text(part):
    try:
        return part.get_content() if part else ""
    except LookupError:  # a character set that Python does not know
        return part.get_payload(decode=True).decode("utf-8", "replace")


def read_mail(path):
    """The mails of an mbox, or of a Maildir and its folders."""
    parse = lambda f: email.message_from_binary_file(f, policy=email.policy.default)
    is_dir = os.path.isdir(path)
    box = mailbox.Maildir(path, parse, create=False) if is_dir else mailbox.mbox(path, parse, create=False)
    for m in (m for b in [box] + [box.get_folder(f) for f in (box.list_folders() if is_dir else [])] for m in b):
        date = m["Date"] and m["Date"].datetime or datetime.datetime.fromtimestamp(0)
        sender = m["From"] or "nobody"
        files = [f"[{a.get_filename() or a.get_content_type()}]" for a in m.iter_attachments()]
        yield {
            "key": m["Message-ID"] or f"{date} {sender}", "date": date, "from": sender, "to": to, "subject": m["Subject"],
            "as": names.get(email.utils.parseaddr(sender)[1].lower()),  # never by its name alone: anybody may be called lead
            "thread": re.findall(r"<[^>]+>", m["References"] or m["In-Reply-To"] or "")[:1],
            "body": "\n".join([text(m.get_body(("plain", "html")))] + files),
        }


def read_amq(path):
    """The messages in the inboxes of an AMQ store: Markdown below a head in JSON."""
    for file in glob.glob(path + "/**/agents/*/inbox/*/*.md", recursive=True):
        with open(file, encoding="utf-8", errors="replace") as f:
            content = f.read().removeprefix("---json\n")
        m, end = json.JSONDecoder().raw_decode(content)
        m |= {"key": m["id"], "date": datetime.datetime.fromisoformat(m["created"].replace("Z", "+00:00"))}
        m |= {"to": to or [file.split(os.sep)[-4]], "as": names.get(m["from"], m["from"]), "thread": [m["thread"]]}
        yield m | {"body": content[end:].strip().removeprefix("---")}


members = {m["name"] for m in json.loads(subprocess.check_output(["atm", "team", "--json"]))["members"]}
mails = list(read_amq(path) if glob.glob(path + "/**/agents", recursive=True) else read_mail(path))
ids, batches, failed = {}, {}, 0
for m in sorted(mails, key=lambda m: m["date"].timestamp()):
    ids[m["key"]] = id = new_id(m["key"], m["date"])
    first = [ids.setdefault(above, id) for above in m["thread"]]  # of what is imported of its thread
    line = {"id": id, "to": m["to"], "subject": " ".join((m.get("subject") or "").split()), "reply_wanted": "no"}
    line["body"] = f"From: {m['from']}\nDate: {m['date']:%Y-%m-%d %H:%M %z}\n\n{m['body'].strip()[:250_000]}".replace("\0", "")
    line |= {"thread": first[0]} if first and first[0] != id else {}
    batches.setdefault(m["as"] if m["as"] in members else None, []).append(line)
for sender, lines in batches.items():
    batch = subprocess.Popen(["atm", "send", "--batch"] + ["--as", sender] * bool(sender), stdin=-1, stdout=-1, text=True)
    results = [json.loads(r) for r in batch.communicate("\n".join(map(json.dumps, lines)))[0].splitlines()]
    bad = [r for r in results if r.get("error") or r.get("failed")]
    for r in bad:
        print(lines[r["line"] - 1]["subject"], r.get("error") or r["failed"], file=sys.stderr)
    print(f"{len(results) - len(bad)} of {len(lines)} sent as {sender or os.environ.get('ATM_AGENT')}")
    failed |= len(bad) > 0 or batch.returncode
sys.exit(failed)
