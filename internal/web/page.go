package web

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/cli/failure"
	"github.com/agentteammail/atm/internal/room"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

//go:embed static
var static embed.FS

//go:embed templates
var templateFiles embed.FS

// templates renders the pages. Text from outside is escaped twice: package letter makes control characters visible, and
// the template escapes the rest.
var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"age":    func(t time.Time) string { return letter.Age(time.Now(), t) },
	"since":  time.Since,
	"span":   letter.Span,
	"clip":   func(s string) string { return letter.EscapeBody(letter.Clip(s, 600)) },
	"escape": letter.Escape,
	"text":   letter.EscapeBody,
	"size":   letter.Size,
	"hint": func(q room.Question) string { // why it cannot be answered from here, and what to do
		if reason, hint := q.OnlyAtTerminal(); reason != "" {
			return fmt.Sprintf("%s %s: %s", q.Agent, reason, hint)
		}
		return ""
	},
}).ParseFS(templateFiles, "templates/*.html"))

const (
	maxMail   = 100         // messages in a part of a page
	maxNew    = 5           // messages on the first page
	maxTurns  = 20          // of an agent
	maxText   = 64 << 10    // bytes of a body
	maxAction = time.Minute // duration of a button's action
	window    = time.Hour   // of the timeline
)

type page struct {
	*server
	Kind, Title, Path string
	Now               time.Time
	Room              *room.Snapshot
	Static            bool      // a file of --export
	Data              any       // see With
	threads           []wire.ID // of its messages

	Result   string // of the last action
	Messages []message
	More     int // how many messages are not shown
	Parts    []part
	Member   teams.Member
	Waiting  []room.Question
	Turns    []teams.Turn
	Screen   []span
	NoScreen string // why there is no screen
	Missing  string // why messages are missing
	Query    string
	Timeline *timeline
	Error    *failure.Error
	Typed    string // the text of an action that failed
	TypedTo  string // its recipients
}

type part struct {
	ID, Title string
	Messages  []message
	More      int
}

type message struct {
	*mailbox.Item
	Title    string // one line
	Notes    string
	Text     string // the body, which may be cut
	Left     string // the size of what was cut
	IsUnread bool   // in my mailbox
	WantsAck bool   // from me, and has not got it yet
}

// With returns the page with the data that one of its templates shows.
func (p page) With(data any) page {
	p.Data = data
	return p
}

// MayAct reports whether the page has forms: it needs an identity and a server.
func (p page) MayAct() bool { return !p.Static && p.Room.Me != "" }

// Link returns the address of a page about a member, a thread or a search, or of one of the main pages.
func (p page) Link(kind string, about ...any) string {
	name := fmt.Sprint(about...)
	switch {
	case p.Static && kind == "team":
		return "index.html"
	case p.Static:
		return strings.TrimSuffix(kind+"-"+name, "-") + ".html"
	case kind == "team":
		return "/"
	case kind == "search" && name != "":
		return "/search?q=" + url.QueryEscape(name)
	}
	return strings.TrimSuffix("/"+kind+"/"+name, "/")
}

// Who renders an address for people of this team.
func (p page) Who(a wire.Address) string { return (&letter.Renderer{Team: p.Room.Team}).Who(a) }

func (s *server) newPage(kind string) *page {
	now, _ := s.Snapshot()
	title := strings.ToUpper(kind[:1]) + kind[1:]
	return &page{server: s, Kind: kind, Title: title, Now: time.Now(), Room: now, Path: "/"}
}

// fill fills the page; about is its member, its thread or the words of its search.
func (p *page) fill(ctx context.Context, about string) (err error) {
	p.Path = p.Link(p.Kind, about)
	defer func() {
		if err != nil && len(p.Messages) > 0 { // an error does not hide the rest
			p.Missing, err = p.Scope.Explain(err).Message, nil
		}
	}()
	switch p.Kind {
	case "team":
		p.Parts = []part{p.mine("new-mail", "New mail", p.Room.Unread, maxNew)}
	case "mail":
		p.Parts = []part{
			p.mine("unread-mail", "Unread", p.Room.Unread, maxMail),
			p.mine("owed", "To acknowledge", p.Room.Owed, maxMail),
			p.mine("read", "Read", p.Room.Read, maxMail),
		}
	case "thread":
		return p.fillThread(ctx, about)
	case "agent", "screen":
		return p.fillAgent(ctx, wire.Name(about))
	case "search":
		p.Query = about
		if about == "" && !p.Static {
			return nil
		}
		items, err := p.Scope.Search(ctx, strings.Fields(about))
		p.list(items)
		return err
	case "timeline":
		lanes, sent, err := p.server.Timeline(ctx, p.Now.Add(-window))
		p.Timeline = newTimeline(p.Now, lanes, sent, p.Room.Team)
		slices.Reverse(sent)
		p.list(sent)
		return err
	}
	return nil
}

func (p *page) list(items []*mailbox.Item) {
	if !p.Static && len(items) > maxMail {
		p.More, items = len(items)-maxMail, items[:maxMail]
	}
	p.Messages = p.messages(items)
}

func (p *page) mine(id, title string, ids []wire.ID, most int) part {
	n := min(most, len(ids))
	if p.Static {
		n = len(ids)
	}
	return part{id, title, p.messages(p.Mail(ids[:n])), len(ids) - n}
}

func (p *page) messages(items []*mailbox.Item) (out []message) {
	r := &letter.Renderer{Now: p.Now, Team: p.Room.Team, Digits: 6}
	for _, it := range items {
		title := letter.Clip(letter.Escape(letter.Clip(it.Title(), 100)), 100) // a title may have a million columns
		m := message{Item: it, Title: title, Notes: command.Notes(r, it), IsUnread: slices.Contains(p.Room.Unread, it.ID)}
		m.WantsAck = it.RequiresAck && (m.IsUnread || slices.Contains(p.Room.Owed, it.ID))
		out, p.threads = append(out, m), append(p.threads, it.ThreadID())
	}
	return out
}

func (p *page) fillThread(ctx context.Context, about string) error {
	thread, message, _ := strings.Cut(about, "/")
	items, err := p.Thread(ctx, wire.ID(thread), wire.ID(message))
	if len(items) == 0 {
		return cmp.Or(err, error(failure.NotFound("no such thread: %s", letter.Escape(thread)).WithHint("atm search WORDS")))
	}
	p.Messages = p.messages(items)
	p.Title = p.Messages[0].Title
	for i := range slices.Backward(p.Messages) {
		m := &p.Messages[i]
		m.Text = m.Body
		if len(m.Body) > maxText {
			m.Text = strings.ToValidUTF8(m.Body[:maxText], "")
			m.Left = letter.Size(int64(len(m.Body) - maxText))
		}
		m.Text = letter.EscapeBody(m.Text)
	}
	return err
}

func (p *page) fillAgent(ctx context.Context, name wire.Name) (err error) {
	member, ok := p.Room.Member(name)
	if !ok {
		_, err := p.Scope.Team.Member(name)
		return cmp.Or(err, error(failure.NotFound("%s has just joined: reload the page", name)))
	}
	p.Title, p.Member = string(name), member
	p.Waiting = slices.DeleteFunc(slices.Clone(p.Room.Waiting), func(q room.Question) bool { return q.Agent != name })
	p.fillScreen(ctx)
	if member.Host == "" && p.Kind == "agent" {
		p.Turns, err = p.server.Turns(name, maxTurns)
	}
	slices.Reverse(p.Turns)
	return err
}

func (p *page) fillScreen(ctx context.Context) {
	if !p.Member.Running {
		p.NoScreen = fmt.Sprintf("atm does not run %s on this machine, so there is no screen to show.", p.Member.Name)
		return
	}
	p.Wait(ctx, func(*room.Snapshot) bool {
		screen := p.server.Screen(p.ctx, p.Member.Name)
		if screen != nil {
			p.Screen, p.NoScreen = spans(strings.TrimRight(screen.ANSI, "\n ")), screen.Problem
		}
		return screen != nil
	})
}

func (p *page) render() ([]byte, error) {
	var b bytes.Buffer
	err := templates.ExecuteTemplate(&b, "page", p)
	return b.Bytes(), err
}

func (p *page) write(w http.ResponseWriter, code int) {
	data, err := p.render()
	if err != nil {
		http.Error(w, "atm: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	w.Write(data)
}

func (p *page) fail(err error) (code int) {
	p.Kind, p.Error = "error", p.Scope.Explain(err)
	p.Title = "That did not work"
	codes := map[string]int{"not_found": http.StatusNotFound, "refused": http.StatusForbidden, "locked": http.StatusConflict, "usage": http.StatusBadRequest}
	return cmp.Or(codes[p.Error.Code], http.StatusInternalServerError)
}
