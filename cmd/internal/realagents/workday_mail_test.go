//go:build linux

package realagents

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

var shortID = regexp.MustCompile(`(?m)^(?:sent|later:?) ([0-9a-f]{6,})`)

// post sends a message with a token of its own, and notes the copies that it makes.
func (d *workday) post(kind, word, body, to string, flags ...string) *mailCopy {
	out, code := d.try(append([]string{"send", to, word + " " + body, "--as", "drv"}, flags...)...)
	c := mailCopy{token: word, kind: kind, mayCome: code != 0}
	if m := shortID.FindStringSubmatch(out); m != nil {
		c.id = m[1]
	}
	if code != 0 {
		d.fault("send %s: exit %d, %s", word, code, out)
	}
	return d.note(c, strings.Split(strings.ReplaceAll(to, "@agents", strings.Join(workers, ",")), ",")...)
}

// note notes a copy for each recipient, and returns the last one.
func (d *workday) note(c mailCopy, to ...string) (last *mailCopy) {
	d.add("sent: " + c.kind)
	d.lock.Lock()
	defer d.lock.Unlock()
	for _, name := range to {
		c.to, _, _ = strings.Cut(name, "@")
		one := c
		d.copies, last = append(d.copies, &one), &one
	}
	return last
}

// A posting is a kind of mail. # in its body is the token's number.
type posting struct {
	kind, body string
	to         string // "": one of the agents
	flags      []string
	send       func(d *workday, p posting, word, to string) // nil: post
}

var postings = []posting{
	{kind: "plain", body: "The parser is done."},
	{kind: "long", body: strings.Repeat("a line of many\n", 20)},
	{kind: "slow", body: "DOSLOW please"},
	{kind: "work", body: "DORUN sleep 14"},
	{kind: "urgent", body: "Stop that.", flags: []string{"--urgent"}},
	{kind: "later", body: "At last.", flags: []string{"--in", "8s"}},
	{kind: "group", body: "All of you.", to: "@agents"},
	{kind: "rule", body: "DORUN touch ok#"},
	{kind: "yes", body: "DORUN touch asky#"},
	{kind: "no", body: "DORUN touch askn#"},
	{kind: "answer", body: "DORUN atm send drv R#z"},
	{kind: "far", body: "Over there.", to: "dan@far"},
	{kind: "person", body: "For you.", to: "me"},
	{kind: "attached", send: func(d *workday, p posting, word, to string) {
		d.post(p.kind, word, "See the file.", to, "--attach", filepath.Join(scripts, "setup"))
	}},
	{kind: "acked", send: func(d *workday, p posting, word, to string) {
		id := string(wire.NewID())
		line := fmt.Sprintf(`{"to":%q,"id":%q,"body":"%s DORUN atm ack %s --done fine","requires_ack":true}`, to, id, word, id[30:])
		out, code := d.tryWith(line, "send", "--batch", "--as", "drv")
		if code != 0 {
			d.fault("send %s: exit %d, %s", word, code, out)
		}
		d.note(mailCopy{token: word, kind: p.kind, id: id[30:], mayCome: code != 0}, to)
	}},
	{kind: "once", send: func(d *workday, p posting, word, to string) {
		c := d.post(p.kind, word, "Only once.", to, "--once", word)
		if out, code := d.try("send", to, word+" Only once.", "--as", "drv", "--once", word); code != 0 || !strings.Contains(out, c.id) {
			d.fault("send --once again: exit %d, %s", code, out)
		}
	}},
	{kind: "dropped", send: func(d *workday, p posting, word, to string) {
		path := filepath.Join(d.dir, ".atm", "main", to, "inbox", "note"+word[1:6]+".txt") // a name is shown, too
		if err := os.WriteFile(path, []byte(word+" was dropped"), 0o600); err != nil {
			d.fault("drop: %v", err)
		}
		d.note(mailCopy{token: word, kind: p.kind}, to)
	}},
	{kind: "withdrawn", send: func(d *workday, p posting, word, to string) {
		c := d.post(p.kind, word, "Forget this.", to)
		out, code := d.try("withdraw", c.id, "--as", "drv")
		d.lock.Lock()
		defer d.lock.Unlock()
		c.mayCome = strings.Contains(out, "notice") || code != 0
		c.isTaken = !c.mayCome
	}},
	{kind: "job", send: func(d *workday, _ posting, word, _ string) {
		out, code := d.try("send", "jobs", "job "+word, "--as", "drv", "--json")
		var sent struct{ ID string }
		if err := json.Unmarshal([]byte(out), &sent); err != nil || code != 0 {
			d.fault("send jobs: exit %d, %s", code, out)
		}
		d.job(sent.ID, func(*job) {})
	}},
	{kind: "ask", send: func(d *workday, p posting, word, to string) {
		d.note(mailCopy{token: word, kind: p.kind}, to)
		d.asking.Go(func() { d.ask(word, to) })
	}},
	{kind: "limit", body: "DOLIMIT", to: "cla", send: (*workday).postLimit},
	{kind: "limit", body: "DOLIMIT", to: "clr", send: (*workday).postLimit},
}

// postLimit sends what brings an agent to its limit, every third time.
func (d *workday) postLimit(p posting, word, _ string) {
	if d.rounds++; d.rounds%3 == 0 {
		d.post(p.kind, word, p.body, p.to)
	}
}

// traffic sends mail of all kinds until the day is over: one of each in each round, so that a short day has all.
func (d *workday) traffic(r *rand.Rand) {
	defer d.asking.Wait()
	for {
		for _, i := range append(r.Perm(len(postings)), r.Perm(len(postings))[:5]...) {
			if time.Since(d.began) > d.lasts {
				return
			}
			p, word := postings[i], d.newToken()
			to := cmp.Or(p.to, workers[r.IntN(len(workers))])
			if p.send != nil {
				p.send(d, p, word, to)
			} else {
				d.post(p.kind, word, strings.ReplaceAll(p.body, "#", word[1:6]), to, p.flags...)
			}
			time.Sleep(time.Duration(r.Int64N(int64(2500 * time.Millisecond))))
		}
	}
}

// ask asks an agent, and counts what it is told.
func (d *workday) ask(word, to string) {
	out, code := d.try("ask", to, word+" SAYS answer"+word[1:6], "--as", "drv")
	switch {
	case code == 0 && strings.TrimSpace(out) == "":
		d.fault("ask %s %s: exit 0, and no answer", to, word)
	case code == 0 && strings.Contains(out, "answer"+word[1:6]):
		d.add("asked: answered")
	case code == 0:
		d.add("asked: another turn's words")
	default:
		d.add("asked: exit " + strconv.Itoa(code))
	}
}

// job has f look at a job, which whoever hears of it first notes.
func (d *workday) job(id string, f func(*job)) {
	d.lock.Lock()
	defer d.lock.Unlock()
	if d.jobs[id] == nil {
		d.jobs[id] = &job{}
	}
	f(d.jobs[id])
}

// take takes jobs, does them, and sometimes dies over one, until the day is over and a lease longer.
func (d *workday) take(worker string, r *rand.Rand) {
	for idle := 0; idle < 15 || time.Since(d.began) < d.lasts; {
		out, code := d.try("take", "jobs", "--as", worker, "--lease", "20s", "--json")
		var got struct {
			Message *struct{ ID string }
			Times   int
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 {
			d.fault("take: exit %d, %s", code, out)
		}
		if got.Message == nil {
			idle++
			time.Sleep(2 * time.Second)
			continue
		}
		idle = 0
		d.job(got.Message.ID, func(j *job) {
			if j.takes++; j.takes > 1 && got.Times < 2 {
				j.unmarked++
			}
		})
		time.Sleep(time.Duration(r.Int64N(int64(3 * time.Second))))
		if r.IntN(8) == 0 && time.Since(d.began) < d.lasts {
			d.add("workers that died over a job")
		} else if _, code := d.try("ack", got.Message.ID, "--done", "--text", "made", "--as", worker); code != 0 {
			d.add("acks refused")
		} else {
			d.job(got.Message.ID, func(j *job) { j.acks++ })
		}
	}
}

// readPeople reads the mail of those who are no agents.
func (d *workday) readPeople() {
	for name := range d.people {
		var out string
		if args := []string{"read", "--as", name, "--json", "--limit", "0"}; name == "dan" {
			out, _ = d.tryFar(args...)
		} else {
			out, _ = d.try(args...)
		}
		var got struct {
			Messages []struct{ Short, Type, Body string }
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			d.fault("read as %s: %s", name, out)
		}
		d.lock.Lock()
		for _, m := range got.Messages {
			if name == "drv" {
				d.received[m.Short] = true
				d.count["received by drv: "+cmp.Or(m.Type, "message")]++
			}
			for _, word := range token.FindAllString(m.Body, 1) {
				s := d.people[name][word]
				s.times++
				d.people[name][word] = s
			}
		}
		d.lock.Unlock()
	}
}

var theAsked = regexp.MustCompile(`ask[yn]\d{5}`)

// answers has its person read what a program asks, and answer that: no to askn. With a text the program must ask about it.
func (w *window) answers(about string) (string, int) {
	reading, _ := w.now()
	q := reading.Dialog
	if q == nil || !strings.Contains(driver.RemoveBlanks(q.Prompt+q.Input), about) {
		return "the screen asks something else", 1
	}
	o, err := q.Pick(ask.Answer{Deny: strings.Contains(driver.RemoveBlanks(q.Prompt+q.Input), "askn")})
	if err != nil {
		return err.Error(), 1
	}
	w.Write([]byte(o.Keys), time.Second)
	return "", 0
}

// answer answers what agents ask, with approve and reject or at the keyboard.
func (d *workday) answer(r *rand.Rand) {
	out, code := d.try("pending", "--json")
	var p struct {
		Pending []struct {
			ID, Agent, Prompt, Tool string
			Input                   json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(out), &p); err != nil || code != 0 {
		d.fault("pending: exit %d, %s", code, out)
	}
	for _, q := range p.Pending {
		text := q.Prompt + string(q.Input)
		isAsked := strings.Contains(text, "touch ask") || q.Tool == "" // else a rule answers it, or the limit asks
		key := q.Agent + " " + cmp.Or(q.ID, text)
		when, isKnown := d.asked[key]
		if !isKnown {
			when = time.Now().Add(time.Duration(1+r.IntN(12)) * time.Second)
			if !isAsked {
				when = when.Add(20 * time.Second)
			}
			d.asked[key] = when
		}
		if time.Now().Before(when) {
			continue
		}
		if !isAsked {
			d.fault("%s is asked what a rule allows: %.200s", q.Agent, text)
		}
		d.lock.Lock()
		w := d.open[q.Agent]
		d.lock.Unlock()
		how, args := "approved", []string{"approve", cmp.Or(q.ID, q.Agent), "--as", "me"}
		switch {
		case strings.Contains(text, "askn"):
			how, args = "rejected", []string{"reject", cmp.Or(q.ID, q.Agent), "--as", "me", "--reason", "not today"}
		case q.Tool == "" && !strings.Contains(text, "asky"):
			how, args = "of a limit, answered", append(args, "1")
		case w != nil && r.IntN(3) == 0:
			args = nil
		}
		if args != nil {
			out, code = d.try(args...)
		}
		if w != nil && (args == nil || code == failure.ExitRefused) {
			how += ", at the keyboard"
			out, code = w.answers(theAsked.FindString(text))
		}
		if code != 0 {
			d.t.Logf("%s: exit %d, %s, of %.200s", how, code, out, text)
		}
		d.listeners[q.Agent].is("")
		d.add(fmt.Sprintf("questions: %s, exit %d", how, code))
		d.asked[key] = time.Now().Add(10 * time.Second) // for the next try
	}
}
