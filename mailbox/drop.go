package mailbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// TakenIn says what TakeIn did.
type TakenIn struct {
	Messages []wire.ID
	Events   int
	Bad      int
	Waiting  int // still being written: look again in a second
}

// notDropped reports whether a name is one that editors, browsers and copiers give to
// what is not finished, or that is hidden.
func notDropped(name string) bool {
	if name == "" || name[0] == '.' || name == "4913" || name[0] == '#' && name[len(name)-1] == '#' {
		return true
	}
	return slices.ContainsFunc([]string{"~", ".tmp", ".part", ".swp", ".crdownload", "___jb_tmp___", "___jb_old___"}, func(end string) bool {
		return strings.HasSuffix(name, end)
	})
}

// claimedName takes the name of a dropped file apart that is being taken in:
// <id>.<original name>.drop
func claimedName(name string) (id wire.ID, original string, ok bool) {
	rest, ok := strings.CutSuffix(name, ".drop")
	if !ok || len(rest) < 37 || !wire.IsID(rest[:36]) || rest[36] != '.' {
		return "", "", false
	}
	return wire.ID(rest[:36]), rest[37:], true
}

// dropped is a file that lies in the inbox, or under a foreign name in new.
type dropped struct {
	path string
	info fs.FileInfo
}

// TakeIn takes in what was dropped into the mailbox by hand: files in inbox/ and, under
// foreign names, in inbox/new/. Each becomes a message, an event, or a file in bad with
// the reason; exactly once, also when killed at any point, since a file is renamed to
// the id that it will have before it is read. A file that a process has open for
// writing is left for later. While another process takes in, TakeIn returns at once.
func (b *Box) TakeIn(ctx context.Context) (t TakenIn, err error) {
	if err := b.Present(); err != nil {
		return t, err
	}
	b.putBackAside(ctx)
	found, begun, err := b.drops()
	if err != nil || len(found)+len(begun) == 0 {
		return t, err
	}
	l, err := b.store.locks.Lock(ctx, string(b.agent)+".drops", lockfile.Exclusive, 0, b.Present)
	var held *lockfile.HeldError
	switch {
	case errors.As(err, &held):
		// Another is at it; should that one be killed, what it has begun waits.
		t.Waiting = len(found) + len(begun)
		return t, nil
	case readOnly(err):
		return t, nil
	case err != nil:
		return t, err
	}
	defer l.Unlock()
	if err := b.Present(); err != nil {
		return t, err
	}
	// Looked at anew: another may have taken some in meanwhile.
	if found, begun, err = b.drops(); err != nil {
		return t, err
	}
	root := b.store.root
	if len(begun) > 0 && errors.Join(root.Sync(b.in("inbox/tmp")), root.Sync(b.in("inbox")), root.Sync(b.in("inbox/new"))) == nil {
		// Synced again: who began these may have been killed before that.
		for _, name := range begun {
			b.finish(ctx, name, false, &t)
		}
	}
	for _, d := range found {
		b.begin(ctx, d, &t)
	}
	return t, nil
}

// drops lists what may be taken in, the oldest first, and what somebody began to take
// in and did not finish.
func (b *Box) drops() (found []dropped, begun []string, err error) {
	root := b.store.root
	for _, dir := range []string{"inbox", "inbox/new"} {
		names, err := root.Names(b.in(dir))
		if err != nil {
			return nil, nil, err
		}
		for _, name := range names {
			if notDropped(name) || dir == "inbox" && slices.Contains(inboxDirs, name) || dir == "inbox/new" && isMessageFile(name) {
				continue
			}
			info, err := root.Lstat(b.in(dir, name))
			if err == nil && info.Mode().IsRegular() && info.Size() > 0 {
				found = append(found, dropped{b.in(dir, name), info})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b dropped) int { return a.info.ModTime().Compare(b.info.ModTime()) })
	begun, err = root.Names(b.in("inbox/tmp"))
	return found, slices.DeleteFunc(begun, func(name string) bool { _, _, ok := claimedName(name); return !ok }), err
}

// inboxDirs are the directories of an inbox; the first generation made the last three.
var inboxDirs = []string{"tmp", "new", "cur", "done", "withdrawn", "bad", "aside", "leases", "dated"}

// beingWritten reports whether some process has the file open for writing, or may have:
// where the system does not tell, a file is left alone until it has not changed for a
// second. certain: the system tells. Until release, who opens it for writing waits.
func beingWritten(f *os.File) (writing, certain bool) {
	certain, busy := lease(f)
	if certain || busy {
		return busy, certain
	}
	info, err := f.Stat()
	if err != nil {
		return true, false
	}
	age := time.Since(info.ModTime())
	return age >= 0 && age < time.Second, false
}

// begin takes one dropped file in: nobody writes it, then it is renamed to the id that
// it will have, then read.
func (b *Box) begin(ctx context.Context, d dropped, t *TakenIn) {
	root := b.store.root
	f, err := root.Open(d.path)
	if err != nil {
		return // gone, or not to be opened by us: doctor names it
	}
	defer f.Close()
	writing, certain := beingWritten(f)
	if writing {
		t.Waiting++
		return
	}
	opened, err := f.Stat()
	if err != nil || !os.SameFile(opened, d.info) || opened.Size() == 0 {
		return
	}
	tmp := b.in("inbox/tmp")
	if b.mkdir(tmp) != nil {
		return
	}
	name := string(wire.NewID()) + "." + cutName(path.Base(d.path)) + ".drop"
	err = root.Move(d.path, tmp+"/"+name)
	if certain {
		release(f)
	}
	// What is published must not find its original in the inbox after a power cut: it
	// would be taken in again, under another id.
	if err == nil && errors.Join(root.Sync(tmp), root.Sync(path.Dir(d.path))) == nil {
		b.finish(ctx, name, certain, t)
	}
}

// finish publishes a file under the id in its name, and then lets go of the original.
// Any step may be repeated by another process after a kill. certain says that nobody
// has it open for writing.
func (b *Box) finish(ctx context.Context, file string, certain bool, t *TakenIn) {
	root := b.store.root
	id, name, _ := claimedName(file)
	file = b.in("inbox/tmp", file)
	f, err := root.Open(file)
	if err != nil {
		return
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return
	}
	m, e, err := b.understand(f, before, id, name)
	known := false
	var bad *BadError
	switch {
	case errors.As(err, &bad):
	case err != nil:
		return // a full disk, say: it stays and is finished later
	case e != nil:
		if b.Log().AppendSync(ctx, *e) != nil {
			return
		}
	default:
		p := &Post{Message: m, To: []*Box{b}, Given: true}
		Deliver(ctx, p)
		if p.Outcomes[0].Err != nil {
			return
		}
		known = p.Outcomes[0].Known && m.ID != id
	}
	if after, err := f.Stat(); bad == nil && (err != nil || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime())) {
		bad = &BadError{Reason: "changed while it was taken in as " + string(id)}
	}
	switch {
	case bad != nil:
		if b.setAside(file, name, bad.Reason) == nil {
			t.Bad++
		}
		return
	case certain && !known:
		root.Remove(file)
	default:
		// Not certain that nobody wrote, or a message of that id was there before and
		// may say something else: the original is kept.
		kept := b.archived("drops")
		if b.mkdir(kept) == nil {
			root.Move(file, kept+"/"+strings.TrimSuffix(path.Base(file), ".drop"))
		}
	}
	switch {
	case e != nil:
		t.Events++
	case !known:
		t.Messages = append(t.Messages, m.ID)
	}
}

// understand reads a dropped file: it is a message or an event. A *BadError says that
// it can be neither.
func (b *Box) understand(f *os.File, info fs.FileInfo, id wire.ID, name string) (*wire.Message, *wire.Event, error) {
	if info.Size() == 0 {
		// Only files with content are taken in: what was in it is gone.
		return nil, nil, &BadError{Name: name, Reason: "its content was lost, as by a power cut"}
	}
	data, err := io.ReadAll(io.LimitReader(f, wire.MaxFile+1))
	if err != nil {
		return nil, nil, err
	}
	text := bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(data) <= wire.MaxFile && (isJSON(name) || bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{"))) {
		m, e, err := b.understandJSON(text, info, id)
		switch {
		case err == nil && (m != nil || e != nil):
			return m, e, nil
		case err != nil && isJSON(name):
			return nil, nil, &BadError{Name: name, Reason: err.Error()}
		}
	}
	clean := strings.ToValidUTF8(name, "\ufffd")
	if len(data) <= wire.MaxBody && utf8.Valid(data) {
		m := b.fill(&wire.Message{Subject: clean, Body: string(data)}, info, id)
		if Check(m) == nil {
			return m, nil, nil
		}
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, nil, err
	}
	a, err := b.store.Attach(clean, f)
	if err != nil {
		return nil, nil, err
	}
	m := &wire.Message{Subject: clean, Body: fmt.Sprintf("(the file is attached, %d bytes)", a.Size), Attachments: []wire.Attachment{a}}
	return b.fill(m, info, id), nil, nil
}

// understandJSON reads a JSON object: an event, what a person says to a session, or a
// message. Nothing: one with none of our fields, and other JSON, which is text.
func (b *Box) understandJSON(data []byte, info fs.FileInfo, id wire.ID) (*wire.Message, *wire.Event, error) {
	e, err := wire.Adopt(data)
	if err == nil {
		e.Source, e.EventID = "drop", string(id)
		return nil, &e, nil
	}
	if !errors.Is(err, wire.ErrNotEvent) {
		return nil, nil, err
	}
	if body, human, err := wire.HumanText(data); human {
		if err != nil {
			return nil, nil, err
		}
		var line bytes.Buffer
		json.Compact(&line, data)
		m := b.fill(&wire.Message{Type: wire.TypeHumanInput, Body: body, Payload: line.Bytes()}, info, id)
		return m, nil, Check(m)
	}
	m, err := wire.DecodeDropped(data, b.store.Team)
	if errors.Is(err, wire.ErrNotMessage) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	switch {
	case m.ID.Time().After(time.Now().Add(24 * time.Hour)):
		m.SetMeta("id", wire.Quote(string(m.ID)))
	case m.ID != "":
		id = m.ID
	}
	if m.Type == wire.TypePermissionReply {
		// A file is no answer to a question about a permission.
		m.Type = ""
		m.SetMeta("type", wire.Quote(wire.TypePermissionReply))
	}
	m = b.fill(m, info, id)
	return m, nil, Check(m)
}

// fill completes a dropped message. Where it came from is said by us.
func (b *Box) fill(m *wire.Message, info fs.FileInfo, id wire.ID) *wire.Message {
	m.ID = id
	if m.From.Agent == "" {
		m.From = wire.Address{Agent: "drop", Team: b.store.Team}
	}
	if len(m.To) == 0 {
		m.To = []wire.Address{b.Address()}
	}
	if m.SentAt.IsZero() {
		m.SentAt = info.ModTime().UTC()
		if y := m.SentAt.Year(); y < 1 || y > 9999 { // touch can say so, RFC 3339 cannot
			m.SentAt = time.Now().UTC()
		}
	}
	o := &wire.Origin{Via: "drop", UID: durable.Owner(info)}
	if m.Origin != nil {
		o.Extra = m.Origin.Extra
	}
	m.Origin = o
	return m
}
