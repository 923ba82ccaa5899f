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

// templates are the pages. Whatever comes from outside is escaped twice: control characters by letter, so that
// they are seen, and the rest by the template.
var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"age":    func(t time.Time) string { return letter.Age(time.Now(), t) },
	"since":  func(t time.Time) time.Duration { return max(0, time.Since(t)) },
	"span":   letter.Span,
	"clip":   func(s string) string { return letter.EscapeBody(letter.Clip(s, 600)) },
	"escape": letter.Escape,
	"text":   letter.EscapeBody,
	"size":   letter.Size,
	"hint": func(q room.Question) string { // why it cannot be answered from here, and what helps
		if why, hint := q.OnlyAtTerminal(); why != "" {
			return fmt.Sprintf("%s %s: %s", q.Agent, why, hint)
		}
		return ""
	},
}).ParseFS(templateFiles, "templates/*.html"))

const (
	mostMail   = 100         // messages of a kind on a page
	mostNew    = 5           // on the first page
	mostTurns  = 20          // of an agent
	mostText   = 64 << 10    // bytes of a body
	mostActing = time.Minute // for what a button does
	window     = time.Hour
)

type page struct {
	*server
	Kind, Title, Path string
	Now               time.Time
	Room              *room.Snapshot
	Static            bool      // a file of --export
	Data              any       // of a part: see With
	threads           []wire.ID // of the messages that it shows

	Said     string // what came of the last action
	Messages []message
	More     int // messages that there are beyond those
	Parts    []part
	Member   teams.Member
	Waiting  []room.Question
	Turns    []teams.Turn
	Screen   []span
	NoScreen string // why there is none
	Missing  string // why there are not all messages
	Query    string
	Timeline *timeline
	Error    *command.Error
	Typed    string // what an action that failed was about
	TypedTo  string // and to whom
}

type part struct {
	ID, Title string
	Messages  []message
	More      int
}

type message struct {
	*mailbox.Item
	Title    string // in a line
	Notes    string
	Text     string // of the body, which may be cut
	Left     string // how much is left out
	IsUnread bool   // in my mailbox
	WantsAck bool   // of me, and has none yet
}

// With is the page for a part of it that shows some data.
func (p page) With(data any) page {
	p.Data = data
	return p
}

// MayAct reports whether there are forms: I am somebody, and somebody listens.
func (p page) MayAct() bool { return !p.Static && p.Room.Me != "" }

// Link is the address of a page: of a member, or of a thread.
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

// Who is an address as people of this team call it.
func (p page) Who(a wire.Address) string { return (&letter.Renderer{Team: p.Room.Team}).Who(a) }

func (s *server) newPage(kind string) *page {
	now, _ := s.Snapshot()
	title := strings.ToUpper(kind[:1]) + kind[1:]
	return &page{server: s, Kind: kind, Title: title, Now: time.Now(), Room: now, Path: "/"}
}

// fill puts on the page what it is to show of a member, a thread or the words of a search.
func (p *page) fill(ctx context.Context, about string) (err error) {
	p.Path = p.Link(p.Kind, about)
	defer func() {
		if err != nil && ctx.Err() == nil && len(p.Messages) > 0 { // what cannot be read hides nothing else
			p.Missing, err = p.Scope.Explain(err).Message, nil
		}
	}()
	switch p.Kind {
	case "team":
		p.Parts = []part{p.mine("new-mail", "New mail", p.Room.Unread, mostNew)}
	case "mail":
		p.Parts = []part{
			p.mine("unread-mail", "Unread", p.Room.Unread, mostMail),
			p.mine("owed", "To acknowledge", p.Room.Owed, mostMail),
			p.mine("read", "Read", p.Room.Read, mostMail),
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
	if !p.Static && len(items) > mostMail {
		p.More, items = len(items)-mostMail, items[:mostMail]
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
		title := letter.Clip(letter.Escape(letter.Clip(it.Title(), 100)), 100) // a line may have a million columns
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
		return cmp.Or(err, error(command.NotFound("no such thread: %s", letter.Escape(thread)).WithHint("atm search WORDS")))
	}
	p.Messages = p.messages(items)
	p.Title = p.Messages[0].Title
	for i := range slices.Backward(p.Messages) {
		m := &p.Messages[i]
		m.Text = m.Body
		if len(m.Body) > mostText {
			m.Text = strings.ToValidUTF8(m.Body[:mostText], "")
			m.Left = letter.Size(int64(len(m.Body) - mostText))
		}
		m.Text = letter.EscapeBody(m.Text)
	}
	return err
}

func (p *page) fillAgent(ctx context.Context, name wire.Name) (err error) {
	member, ok := p.Room.Member(name)
	if !ok {
		_, err := p.Scope.Team.Member(name)
		return cmp.Or(err, error(command.NotFound("%s has just come: load the page again", name)))
	}
	p.Title, p.Member = string(name), member
	p.Waiting = slices.DeleteFunc(slices.Clone(p.Room.Waiting), func(q room.Question) bool { return q.Agent != name })
	p.fillScreen(ctx)
	if member.Host == "" && p.Kind == "agent" {
		p.Turns, err = p.server.Turns(name, mostTurns)
	}
	slices.Reverse(p.Turns)
	return err
}

func (p *page) fillScreen(ctx context.Context) {
	if !p.Member.Running {
		p.NoScreen = fmt.Sprintf("atm does not run %s on this machine: there is no screen to show.", p.Member.Name)
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

func (p *page) fail(err error) (code int) {
	p.Kind, p.Error = "error", p.Scope.Explain(err)
	p.Title = "That did not work"
	codes := map[string]int{"not_found": http.StatusNotFound, "refused": http.StatusForbidden, "locked": http.StatusConflict, "usage": http.StatusBadRequest}
	return cmp.Or(codes[p.Error.Code], http.StatusInternalServerError)
}
