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

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/room"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer/history"
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
	"quote":  func(s string) string { return letter.Quote(s, 200) },
	"text":   letter.EscapeBody,
	"size":   letter.Size,
	"hint": func(q room.Question) string { // why it cannot be answered from here, and what to do
		if reason, hint := app.AnsweredElsewhere(&q.Question); reason != "" {
			return fmt.Sprintf("%s %s: %s", q.Agent, reason, hint)
		}
		return ""
	},
}).ParseFS(templateFiles, "templates/*.html"))

const (
	maxMail = 100      // messages in a part of a page
	maxNew  = 5        // messages on the first page
	maxText = 64 << 10 // bytes of a body
)

type page struct {
	*server
	Kind, Title, Path string
	Now               time.Time
	Room              *room.Snapshot
	Static            bool      // a file of --export
	Data              any       // see With
	threads           []wire.ID // of its messages

	Result   string    // of the last action
	Parts    []part    // its lists of mail
	Messages []message // of a thread
	Member   presence.Member
	Waiting  []room.Question
	Turns    []history.Turn
	Screen   []span
	NoScreen string // why there is no screen
	Missing  string // why messages are missing
	Query    string
	Timeline *timeline
	Error    *failure.Error
	Typed    string // the text of an action that failed
	TypedTo  string // its recipients
}

// Late is what waits for a person and is no question.
func (p *page) Late() []room.Wait { return p.Room.Waits()[len(p.Room.Waiting):] }

// A part is a list of mail.
type part struct {
	ID, Title string
	Messages  []message
	More      int // how many messages are not shown
}

type message struct {
	*maildir.Item
	page *page
}

func (p *page) messages(items []*maildir.Item) (out []message) {
	for _, it := range items {
		out, p.threads = append(out, message{it, p}), append(p.threads, it.ThreadID())
	}
	return out
}

// Title is a line; the message's own may have a million columns.
func (m message) Title() string {
	return letter.Clip(letter.Escape(letter.Clip(m.Item.Title(), 100)), 100)
}

func (m message) Notes() string { return command.Notes(m.page.renderer(), m.Item) }

// Text is the body, as far as it is shown.
func (m message) Text() string {
	return letter.EscapeBody(strings.ToValidUTF8(m.Body[:min(maxText, len(m.Body))], ""))
}

// Left is the size of what Text leaves out, "" for nothing.
func (m message) Left() string {
	if len(m.Body) <= maxText {
		return ""
	}
	return letter.Size(int64(len(m.Body) - maxText))
}

// IsEscaped reports whether Text or the subject has escapes.
func (m message) IsEscaped() bool { return letter.IsEscaped(m.Item.Message) }

// IsUnread reports whether it is in my mailbox, unread.
func (m message) IsUnread() bool { return slices.Contains(m.page.Room.Unread, m.ID) }

// WantsAck reports whether I owe it an ack.
func (m message) WantsAck() bool {
	return m.RequiresAck && (m.IsUnread() || slices.Contains(m.page.Room.Owed, m.ID))
}

// With returns the page with the data that one of its templates shows.
func (p page) With(data any) page {
	p.Data = data
	return p
}

// MayAct reports whether the page has forms: it needs an identity and a server.
func (p page) MayAct() bool { return !p.Static && p.Room.Me != "" }

// HasMail reports whether the page has messages.
func (p page) HasMail() bool { return len(p.threads) > 0 }

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

func (p page) renderer() *letter.Renderer {
	return &letter.Renderer{Now: p.Now, Team: p.Room.Team, Digits: 6}
}

// Who renders an address for people of this team.
func (p page) Who(a wire.Address) string { return p.renderer().Who(a) }

func (s *server) newPage(kind string) *page {
	now, _ := s.Snapshot()
	title := strings.ToUpper(kind[:1]) + kind[1:]
	return &page{server: s, Kind: kind, Title: title, Now: time.Now(), Room: now, Path: "/"}
}

// fill fills the page; about is its member, its thread or the words of its search.
func (p *page) fill(ctx context.Context, about string) (err error) {
	p.Path = p.Link(p.Kind, about)
	switch p.Kind {
	case "team":
		p.addMine("new-mail", "New mail", p.Room.Unread, maxNew)
	case "mail":
		p.addMine("unread-mail", "Unread", p.Room.Unread, maxMail)
		p.addMine("owed", "To acknowledge", p.Room.Owed, maxMail)
		p.addMine("read", "Read", p.Room.Read, maxMail)
	case "thread":
		err = p.fillThread(ctx, about)
	case "agent", "screen":
		err = p.fillAgent(ctx, wire.Name(about))
	case "search":
		p.Query = about
		if about != "" || p.Static {
			var items []*maildir.Item
			items, err = command.Search(ctx, p.Scope, strings.Fields(about))
			p.addFound(items)
		}
	case "timeline":
		var sent []*maildir.Item
		p.Timeline, sent, err = p.timeline(ctx)
		slices.Reverse(sent)
		p.addFound(sent)
	}
	if err != nil && p.HasMail() { // an error does not hide the rest
		p.Missing, err = p.Scope.Given.Explain(err).Message, nil
	}
	return err
}

func (p *page) addMine(id, title string, ids []wire.ID, most int) {
	n := min(len(ids), most)
	p.Parts = append(p.Parts, part{id, title, p.messages(p.Mail(ids[:n])), len(ids) - n})
}

func (p *page) addFound(items []*maildir.Item) {
	n := min(len(items), maxMail)
	if p.Static { // every message of a record is there
		n = len(items)
	}
	p.Parts = append(p.Parts, part{"found", "Messages", p.messages(items[:n]), len(items) - n})
}

func (p *page) fillThread(ctx context.Context, about string) error {
	thread, message, _ := strings.Cut(about, "/")
	items, err := p.Thread(ctx, wire.ID(thread), wire.ID(message))
	if len(items) == 0 {
		return cmp.Or(err, error(failure.NotFound("no such thread: %s", letter.Escape(thread)).WithHint("`atm search WORDS`")))
	}
	p.Messages = p.messages(items)
	p.Title = p.Messages[0].Title()
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
	if member.Running {
		p.fillScreen(ctx)
	} else {
		p.NoScreen = fmt.Sprintf("atm does not run %s on this machine, so there is no screen to show.", name)
	}
	if member.Host == "" && p.Kind == "agent" {
		p.Turns, err = p.server.Turns(name)
		slices.Reverse(p.Turns)
	}
	return err
}

func (p *page) fillScreen(ctx context.Context) {
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

// fail makes it the page of an error, and returns its status code.
func (p *page) fail(err error) (code int) {
	p.Kind, p.Title, p.Error = "error", "That did not work", p.Scope.Given.Explain(err)
	codes := map[string]int{"not_found": http.StatusNotFound, "refused": http.StatusForbidden, "locked": http.StatusConflict, "usage": http.StatusBadRequest}
	return cmp.Or(codes[p.Error.Code], http.StatusInternalServerError)
}
