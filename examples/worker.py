#!/usr/bin/env python3
"""Takes jobs from a shared inbox and runs a command for each, with the job's text on its stdin.

    atm team add jobs --shared
    atm team add worker
    ATM_AGENT=worker python3 worker.py jobs sh -c 'cat >task; make'

Exit 0 of the command: the job is done. 75: it is somebody else's turn. Anything else: blocked. Its last line goes to the
sender. Start as many workers as you like, each with a member of its own.
"""
import json, signal, subprocess, sys


def atm(*words):
    return subprocess.run(["atm", *words, "--json"], stdout=subprocess.PIPE, text=True)


def run(command, job):
    """Runs the command, and keeps the lease as long as it runs: a job whose worker dies is free when the lease ends."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as p:
        text = job["body"]
        while True:
            try:
                return p.communicate(text, timeout=300)[0], p.returncode
            except subprocess.TimeoutExpired:
                text = None
                if atm("take", "--renew", job["id"]).returncode:
                    p.kill()  # withdrawn, or somebody else's
            except KeyboardInterrupt:
                p.kill()
                raise


signal.signal(signal.SIGTERM, signal.default_int_handler)
inbox, *command = sys.argv[1:]
job = None
try:
    while (taken := atm("take", inbox, "--wait", "--timeout", "0")).returncode == 0:
        job = json.loads(taken.stdout)["message"]
        said, code = run(command, job)
        last = (said.strip().splitlines() or [f"exit {code}"])[-1][:1000]
        outcome = {0: "--done", 75: "--declined"}.get(code, "--blocked")  # what is declined goes to the next worker
        atm("ack", job["id"], outcome, "--text=" + last)
        job = None
    sys.exit(taken.stdout or taken.returncode)
except KeyboardInterrupt:
    if job:
        atm("unread", job["id"])  # it is free again
    sys.exit(130)
