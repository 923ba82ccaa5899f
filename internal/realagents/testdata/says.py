"""The kit's fake model, which also knows

    SAYS text    answers with the text, to the end of the message
    DORUN cmd    asks to run the rest of the line
    DOLIMIT      refuses: the usage limit is reached, and ends in an hour

    says.py KIT [--port N] [--log FILE]
"""
import json
import re
import sys
import time

sys.path.insert(0, sys.argv[1])
import fake_model as model  # noqa: E402

answer, reply = model.answer, model.Handler.reply


def says(said):
    run = re.search(r"\bDORUN (.*)", said.user)
    if run and said.texts:
        return model.Answer(command=run.group(1).strip())
    found = re.search(r"\bSAYS (.*)", said.user, re.S)
    if not found:
        return answer(said)
    text = re.sub(r"\s*</pasted_content[^>]*>\s*$", "", found.group(1))  # of the newest Claude Code
    text = re.sub(r"\s*\[/atm\]$", "", text)
    return model.Answer(re.sub(r"\n  ", "\n", text).strip())  # atm indents what it types


def limited(self, api, kind, body, said):
    if kind == "side" or not re.search(r"\bDOLIMIT\b", said.user):
        return reply(self, api, kind, body, said)
    end = int(time.time()) + 3600
    refusal = {"type": "error", "error": {"type": "rate_limit_error", "message": "the limit is reached"}}
    if api == "responses":
        refusal = {"error": {"type": "usage_limit_reached", "message": "the limit is reached", "plan_type": "plus", "resets_at": end}}
    raw = json.dumps(refusal).encode()
    self.send_response(429)
    for name, value in {
        "status": "rejected", "reset": end, "representative-claim": "five_hour", "5h-status": "rejected",
        "5h-reset": end, "5h-utilization": "1.0", "overage-status": "rejected", "overage-disabled-reason": "out_of_credits",
    }.items():
        self.send_header("anthropic-ratelimit-unified-" + name, str(value))
    self.send_header("x-should-retry", "false")
    self.send_header("content-type", "application/json")
    self.send_header("content-length", str(len(raw)))
    self.end_headers()
    self.wfile.write(raw)


model.answer, model.Handler.reply = says, limited
sys.argv[1:] = sys.argv[2:]
model.main()
