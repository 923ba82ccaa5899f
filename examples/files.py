#!/usr/bin/env python3
"""Sends and reads mail with nothing but files: docs/format.md, "With files alone". No atm has to be installed.

    python3 files.py .atm/main alice send bob 'Rebase, please.'
    python3 files.py .atm/main bob read
    python3 files.py .atm/main bob reply ID 'Done.'
"""
import contextlib, datetime, fcntl, json, os, pathlib, secrets, sys, time

team, me = pathlib.Path(sys.argv[1]), sys.argv[2]


@contextlib.contextmanager
def lock(name, how):
    """A lock file is never removed; if another one lies there now, the team was moved."""
    path = team / ".locks" / name
    with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o600)) as f:
        fcntl.flock(f, how)
        if not os.path.samestat(os.fstat(f.fileno()), os.stat(path)):
            raise OSError("the team has moved")
        yield


def sync(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def new_id():
    n = int(time.time() * 1000) << 80 | 7 << 76 | secrets.randbits(12) << 64 | 2 << 62 | secrets.randbits(62)
    return f"{n >> 96:08x}-{n >> 80 & 0xFFFF:04x}-{n >> 64 & 0xFFFF:04x}-{n >> 48 & 0xFFFF:04x}-{n & (1 << 48) - 1:012x}"


def send(to, body, **fields):
    """Returns once the message survives a power cut. Killed before, it is whole or absent."""
    now = datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")
    m = {"id": new_id(), "from": f"{me}@{team.name}", "to": [f"{to}@{team.name}"], "body": body, "sent_at": now, **fields}
    inbox, name = team / to / "inbox", m["id"] + ".json"
    with open(os.open(inbox / "tmp" / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as f:
        json.dump(m, f)
        f.flush()
        os.fsync(f.fileno())
    with lock(to + ".inbox", fcntl.LOCK_SH):
        os.link(inbox / "tmp" / name, inbox / "new" / name)  # unlike a rename, never replaces a file
        os.unlink(inbox / "tmp" / name)
        sync(inbox / "new")
    return m["id"]


def read():
    """Yields each unread message, and marks it as read once whoever reads has come back for the next one."""
    inbox = team / me / "inbox"
    for path in sorted((inbox / "new").glob("*.json")):
        with contextlib.suppress(FileNotFoundError):  # another reader was faster
            m = message(path)
            if m:  # else atm sets it aside
                yield m
                move(path, inbox / "cur" if m.get("requires_ack") else done(path.stem))  # in cur it waits for the answer


def message(path):
    with contextlib.suppress(ValueError):
        m = json.loads(path.read_bytes())
        if isinstance(m, dict) and m.get("id") == path.stem and "from" in m:
            return m


def reply(id, body):
    """Answers a message that was read; that is the acknowledgement, too."""
    inbox = team / me / "inbox"
    path = next(p for p in (inbox / "cur" / f"{id}.json", done(id) / f"{id}.json") if p.exists())
    m = message(path)
    fields = {"in_reply_to": id, "thread": m.get("thread", id), "hop": m.get("hop", 0) + 1}
    sent = send(m["from"].split("@")[0], body, **fields)
    if path.parent.name == "cur":
        move(path, done(id))
    return sent


def done(id):
    day = datetime.datetime.fromtimestamp(int(id[:8] + id[9:13], 16) / 1000, datetime.timezone.utc)
    return team / me / "inbox" / "done" / f"{day:%Y-%m-%d}"


def move(path, to):
    to.mkdir(0o700, exist_ok=True)
    with lock(me + ".reader", fcntl.LOCK_EX):
        if not (to / path.name).exists():
            os.rename(path, to / path.name)
            sync(to)


with lock(me + ".runner", fcntl.LOCK_SH | fcntl.LOCK_NB):  # fails while the agent runs under atm, which acts for it
    pass
if sys.argv[3] == "read":
    for m in read():
        print(m["id"], "from", m["from"] + ":", m.get("body", ""), flush=True)
else:
    print({"send": send, "reply": reply}[sys.argv[3]](*sys.argv[4:]))
