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

	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/room"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer"
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
}).ParseFS(templateFiles, "templates/*.html"))

const (
	maxMail = 100      // messages in a part of a page
	maxNew  = 5        // messages on the first page
	maxText = 64 << 10 // bytes of a body

	joinTime = 10 * time.Second // in which the room must know a member that has just joined
)

type page struct {
	*server
	Kind, Title, Path string
	Now               time.Time
	Room              *room.Snapshot
	Data              any // see With

	Result   string    // of the last action
	Undo     []wire.ID // the messages that it has marked as read
	Parts    []part    // its lists of mail
	Messages []message // of a thread
	Next     []message // the one after the open message, as that stood in the list when it was opened
	after    wire.ID   // its id, as the page says that was rendered first
	Member   presence.Member
	Waiting  []question
	Queue    *room.Queue // of a shared inbox
	Turns    []turn
	Sessions []conversation
	Screen   []span
	NoScreen string                   // why there is no screen
	Missing  string                   // why messages are missing
	isKept   func(*wire.Message) bool // an unread message from me; nil: without --as
	Query    string
	Timeline *timeline
	Error    *failure.Error
	Typed    url.Values // the form whose action failed
}

// Late is what waits for a person and is no question.
func (p *page) Late() []room.Wait { return p.Room.Late() }

// With returns the page with the data that one of its templates shows.
func (p page) With(data any) page {
	p.Data = data
	return p
}

// MayAct reports whether the page has forms: it needs an identity.
func (p page) MayAct() bool { return p.Room.Me != "" }

// UnreadOf is how many messages a member has not read; of me without those that are shown as questions.
func (p page) UnreadOf(m presence.Member) int {
	if m.Name == p.Room.Me {
		return p.Room.New
	}
	return m.Unread
}

// Project is the room's, in a line.
func (p page) Project() string { return letter.OneLine(p.Room.Project, 60) }

// HasAgents reports whether the team has a member that is no person.
func (p page) HasAgents() bool {
	return slices.ContainsFunc(p.Room.Members, func(m presence.Member) bool { return m.Kind != "person" })
}

// Asks reports whether a member's question is shown.
func (p page) Asks(name wire.Name) bool {
	return slices.ContainsFunc(p.Waiting, func(q question) bool { return q.Agent == name })
}

// HasTurns reports whether the page's member has turns that are known here.
func (p page) HasTurns() bool {
	return p.Member.Host == "" && p.Member.Kind != "person" && !p.Member.Shared
}

// MayInterrupt reports whether the page's member has a turn that can be interrupted from here.
func (p page) MayInterrupt() bool {
	return p.MayAct() && p.Member.Running && p.Member.State == reducer.WordBusy
}

// Number counts from 1.
func (p page) Number(i int) int { return i + 1 }

// Mends reports whether the form that failed has something that was typed, so that it can be sent again.
func (p page) Mends() bool { return p.Typed.Get("text") != "" || p.Typed.Get("to") != "" }

// TakesFiles reports whether files could go with the form that failed; a browser sends them only if they are chosen again.
func (p page) TakesFiles() bool { return slices.Contains([]string{"send", "reply"}, p.Typed.Get("do")) }

// A field is one of a form.
type field struct{ Name, Value string }

// Rest are the fields of the form that failed which nobody types.
func (p page) Rest() (rest []field) {
	for name := range p.Typed {
		if !slices.Contains([]string{"csrf", "back", "page", "to", "text", "file"}, name) {
			rest = append(rest, field{name, p.Typed.Get(name)})
		}
	}
	return rest
}

// HasMail reports whether the page has messages.
func (p page) HasMail() bool {
	return len(p.Messages) > 0 || slices.ContainsFunc(p.Parts, func(one part) bool { return len(one.Messages) > 0 })
}

// Link returns the address of a page about a member, a thread or a search, or of one of the main pages.
func (p page) Link(kind string, about ...any) string {
	name := fmt.Sprint(about...)
	switch {
	case kind == "team":
		return "/"
	case kind == "mail" && name != "":
		return "/mail?after=" + url.QueryEscape(name)
	case kind == "search" && name != "":
		return "/search?q=" + url.QueryEscape(name)
	}
	return strings.TrimSuffix("/"+kind+"/"+name, "/")
}

func (p page) renderer() *letter.Renderer {
	return &letter.Renderer{Now: p.Now, Team: p.Room.Team, Digits: 6, IsKept: p.isKept}
}

// Who renders an address for people of this team.
func (p page) Who(a wire.Address) string { return p.renderer().Who(a) }

func (s *server) newPage(kind string) *page {
	now, _ := s.Snapshot()
	title := strings.ToUpper(kind[:1]) + kind[1:]
	p := &page{server: s, Kind: kind, Title: title, Now: time.Now(), Room: now, Path: "/"}
	if me := s.Scope.Me; me != nil {
		p.isKept = s.Scope.KeptFrom(me)
	}
	return p
}

// fill fills the page; about is its member, its thread or the words of its search.
func (p *page) fill(ctx context.Context, about string) (err error) {
	p.Path = p.Link(p.Kind, about)
	switch p.Kind {
	case "team":
		p.Waiting = p.questions("")
		p.addMine("new-mail", "Mail for you", p.Room.Mail[:p.Room.Open], maxNew)
	case "mail":
		if about != "" {
			ids, more := p.Older(wire.ID(about), maxMail)
			p.Parts = append(p.Parts, part{"older", "Older", p.messages(p.Mail(ids)), more})
			break
		}
		p.Waiting = p.questions("")
		mail, wanting, open := p.Room.Mail, p.Room.Wanting, p.Room.Open
		p.addMine("wanting", "Wants you first", mail[:wanting], maxMail)
		p.addMine("unread-mail", "Unread", mail[wanting:open], maxMail)
		p.addMine("read", "Read", mail[open:], maxMail)
	case "thread":
		err = p.fillThread(ctx, about)
	case "agent", "screen":
		err = p.fillAgent(ctx, wire.Name(about))
	case "search":
		p.Query = about
		if about != "" {
			var items []*wire.Item
			items, err = command.SearchWords(ctx, p.Scope, strings.Fields(about))
			p.addFound(items)
		}
	case "timeline":
		var sent []*wire.Item
		p.Timeline, sent, err = p.timeline(ctx)
		slices.Reverse(sent)
		p.addFound(sent)
	}
	if err != nil && p.HasMail() { // an error does not hide the rest
		p.Missing, err = p.Scope.Given.Explain(err).Message, nil
	}
	return err
}

func (p *page) fillThread(ctx context.Context, about string) error {
	thread, message, _ := strings.Cut(about, "/")
	items, err := p.Thread(ctx, wire.ID(thread), wire.ID(message))
	if len(items) == 0 {
		return cmp.Or(err, error(failure.NotFound("no such thread: %s", letter.Escape(thread)).WithHint("`atm search WORDS`")))
	}
	p.Messages = p.messages(p.AsMine(items))
	p.Title = p.Messages[0].Title()
	if next := cmp.Or(p.after, p.server.Next(wire.ID(message))); p.MayAct() && wire.IsID(string(next)) {
		p.Next = p.messages(p.Mail([]wire.ID{next}))
	}
	if len(p.Next) > 0 { // a form leads back to the page with this one, wherever it has put the open message
		p.Path += "?next=" + string(p.Next[0].ID)
	}
	return err
}

func (p *page) fillAgent(ctx context.Context, name wire.Name) (err error) {
	within, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	var member presence.Member
	var isKnown bool
	p.Room = p.Wait(within, func(now *room.Snapshot) bool {
		if member, isKnown = now.Member(name); !isKnown {
			_, err = p.Scope.Team.Member(name)
		}
		return isKnown || err != nil
	})
	switch {
	case isKnown:
		err = nil
	case err != nil:
		return err
	default: // no 404: an open page stays, and tries again
		return failure.Failed("the members cannot be read now: reload the page")
	}
	p.Title, p.Member = string(name), member
	p.Waiting = p.questions(string(name))
	if member.Running {
		p.fillScreen(ctx)
	} else {
		p.NoScreen = fmt.Sprintf("atm does not run %s on this machine, so there is no screen to show.", name)
	}
	if member.Shared && member.Host == "" {
		var unreadable error
		if p.Queue, unreadable = p.server.Queue(name); unreadable != nil {
			p.Missing = p.Scope.Given.Explain(unreadable).Message
		}
	}
	if p.HasTurns() && p.Kind == "agent" {
		var unreadable error
		p.Turns, err = p.turns(name)
		p.Sessions, unreadable = p.conversations(ctx, name)
		if unreadable != nil { // it does not hide the rest
			p.Missing = p.Scope.Given.Explain(unreadable).Message
		}
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

func (p *page) write(w http.ResponseWriter, r *http.Request, code int) {
	data, err := p.render()
	if err != nil {
		http.Error(w, "atm: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	answer(w, r, code, data)
}

// fail makes it the page of an error, and returns its status code.
func (p *page) fail(err error) (code int) {
	p.Kind, p.Title, p.Error = "error", "That did not work", p.Scope.Given.Explain(err)
	if p.Error.Code == "not_found" && p.Typed == nil {
		p.Title = "There is no such page"
	}
	codes := map[string]int{"not_found": http.StatusNotFound, "refused": http.StatusForbidden, "locked": http.StatusConflict, "usage": http.StatusBadRequest}
	return cmp.Or(codes[p.Error.Code], http.StatusInternalServerError)
}
