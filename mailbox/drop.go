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
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// Taken says what TakeIn did.
type Taken struct {
	Messages []wire.ID
	Events   int
	Bad      int
	Waiting  int // still being written: look again in a second
}

// notDropped reports whether a name is one that editors, browsers and copiers
// give to what is not finished, or that is hidden.
func notDropped(name string) bool {
	if name == "" || name[0] == '.' || name == "4913" || name[0] == '#' && name[len(name)-1] == '#' {
		return true
	}
	for _, end := range []string{"~", ".tmp", ".part", ".swp", ".crdownload", "___jb_tmp___", "___jb_old___"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// claimOf takes the name of a claim apart: <id>.<original name>.drop
func claimOf(name string) (id wire.ID, original string, ok bool) {
	rest, ok := strings.CutSuffix(name, ".drop")
	if !ok || len(rest) < 37 || !wire.IsID(rest[:36]) || rest[36] != '.' {
		return "", "", false
	}
	return wire.ID(rest[:36]), rest[37:], true
}

// dropped is a file that lies in the inbox, or under a foreign name in new.
type dropped struct {
	dir  string // for room.dir
	name string
	info fs.FileInfo
}

// TakeIn takes in what was dropped into the mailbox by hand: files in inbox/
// and, under foreign names, in inbox/new/. Each becomes a message, an event,
// or a file in bad with the reason; exactly once, also when killed at any
// point, since a file is claimed by a rename to the id that it will have
// before it is read. A file that a process has open for writing is left for
// later. While another process takes in, TakeIn returns at once.
func (b *Box) TakeIn(ctx context.Context) (Taken, error) {
	r, err := b.enter()
	if err != nil {
		return Taken{}, err
	}
	_, _, err = r.unread(1, false)
	r.close()
	if err != nil {
		return Taken{}, err
	}
	return b.takeIn(ctx, r.foreign)
}

// takeIn is TakeIn for a caller who has listed new and seen these foreign
// names there.
func (b *Box) takeIn(ctx context.Context, foreign []string) (Taken, error) {
	var t Taken
	r, err := b.enter()
	if err != nil {
		return t, err
	}
	found, claims, err := r.drops(foreign)
	r.close()
	if err != nil || len(found)+len(claims) == 0 {
		return t, err
	}
	l, err := b.store.locks.Try(string(b.agent)+".drops", lockfile.Exclusive, b.seen)
	var held *lockfile.HeldError
	if errors.As(err, &held) {
		// Another is at it; should that one be killed, its claims wait.
		t.Waiting = len(found) + len(claims)
		return t, nil
	}
	if readOnly(err) {
		return t, nil
	}
	if err != nil {
		return t, err
	}
	defer l.Unlock()
	if r, err = b.enter(); err != nil {
		return t, err
	}
	defer r.close()
	// Looked at anew: another may have taken some in meanwhile.
	if found, claims, err = r.drops(foreign); err != nil {
		return t, err
	}
	for _, name := range claims {
		r.carryOn(ctx, name, false, &t)
	}
	for _, d := range found {
		r.claim(ctx, d, &t)
	}
	return t, nil
}

// drops lists what may be taken in, the oldest first, and the claims that
// somebody began and did not end.
func (r *room) drops(foreign []string) (found []dropped, claims []string, err error) {
	consider := func(dir string, d *atomicfile.Dir, name string) {
		if notDropped(name) {
			return
		}
		info, err := d.Lstat(name)
		if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
			return
		}
		found = append(found, dropped{dir, name, info})
	}
	inbox, err := r.dir("inbox", false)
	if inbox == nil || err != nil {
		return nil, nil, err
	}
	err = inbox.Names(func(names []string) bool {
		for _, n := range names {
			if !slices.Contains(ownDirs, n) {
				consider("inbox", inbox, n)
			}
		}
		return true
	})
	if err != nil {
		return nil, nil, err
	}
	for _, n := range foreign {
		consider("inbox/new", r.fresh, n)
	}
	tmp, err := r.dir("inbox/tmp", false)
	if err != nil {
		return nil, nil, err
	}
	if tmp != nil {
		err = tmp.Names(func(names []string) bool {
			for _, n := range names {
				if _, _, ok := claimOf(n); ok {
					claims = append(claims, n)
				}
			}
			return true
		})
	}
	slices.Sort(claims)
	slices.SortStableFunc(found, func(a, b dropped) int {
		if c := a.info.ModTime().Compare(b.info.ModTime()); c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
	return found, claims, err
}

// beingWritten reports whether some process has the file open for writing, or
// may have: where the system does not tell, a file is left alone until it has
// not changed for a second.
func beingWritten(d *atomicfile.Dir, name string) (bool, error) {
	f, err := d.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	leased, busy := lease(f)
	if leased {
		release(f)
	}
	return busy || !leased && young(f), nil
}

func young(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return true
	}
	age := time.Since(changed(info))
	return age >= 0 && age < time.Second
}

// claim takes one dropped file in: nobody writes it, then it is renamed to its
// claim, then read.
func (r *room) claim(ctx context.Context, d dropped, t *Taken) {
	from, err := r.dir(d.dir, false)
	if from == nil || err != nil {
		return
	}
	f, err := from.Open(d.name)
	if err != nil {
		return // gone, or not to be opened by us: doctor names it
	}
	defer f.Close()
	leased, busy := lease(f)
	if busy || !leased && young(f) {
		t.Waiting++
		return
	}
	opened, err := f.Stat()
	if err != nil || !atomicfile.SameFile(opened, d.info) || opened.Size() == 0 {
		return
	}
	tmp, err := r.dir("inbox/tmp", true)
	if err != nil {
		return
	}
	name := string(wire.NewID()) + "." + cut(d.name) + ".drop"
	err = atomicfile.Move(from, d.name, tmp, name)
	if leased {
		release(f)
	}
	if err == nil {
		r.carryOn(ctx, name, leased, t)
	}
}

// carryOn publishes what a claim holds under the claim's id, and then lets go
// of the original. Any step may be repeated by another process after a kill.
func (r *room) carryOn(ctx context.Context, claim string, leased bool, t *Taken) {
	id, name, _ := claimOf(claim)
	tmp, err := r.dir("inbox/tmp", false)
	if err != nil || tmp == nil {
		return
	}
	f, err := tmp.Open(claim)
	if err != nil {
		return
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return
	}
	var what meaning
	if before.Size() == 0 {
		// Only files with content are claimed: what was in it is gone.
		err = &BadError{Reason: "its content was lost, as by a power cut"}
	} else {
		what, err = r.understand(f, before, id, name)
	}
	var be *BadError
	if errors.As(err, &be) {
		if r.toBadAs(tmp, claim, name, be.Reason) == nil {
			t.Bad++
		}
		return
	}
	if err != nil {
		return // a full disk, say: the claim stays and is carried on later
	}
	known := false
	if what.event != nil {
		if r.box.Append(ctx, AppendOptions{Sync: true}, *what.event) != nil {
			return
		}
	} else {
		p := &Post{Message: what.message, To: []*Box{r.box}, Given: true}
		Deliver(ctx, p)
		if p.Outcomes[0].Err != nil {
			return
		}
		known = p.Outcomes[0].Known && what.message.ID != id
	}
	after, err := f.Stat()
	switch {
	case err != nil || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()):
		if r.toBadAs(tmp, claim, name, "changed while it was taken in as "+string(id)) == nil {
			t.Bad++
		}
		return
	case leased && !known:
		tmp.Remove(claim)
	default:
		// Not certain that nobody wrote, or a message of that id was there
		// before and may say something else: the original is kept.
		if drops, err := r.dir("archive/drops", true); err == nil {
			atomicfile.Move(tmp, claim, drops, strings.TrimSuffix(claim, ".drop"))
		}
	}
	switch {
	case what.event != nil:
		t.Events++
	case !known:
		t.Messages = append(t.Messages, what.message.ID)
	}
}

// meaning is what a dropped file turned out to be.
type meaning struct {
	message *wire.Message
	event   *wire.Event
}

// understand reads a dropped file. A *BadError says that it can be nothing.
func (r *room) understand(f *os.File, info fs.FileInfo, id wire.ID, name string) (meaning, error) {
	if info.Size() > wire.MaxFile {
		return r.attached(f, info, id, name)
	}
	data, err := io.ReadAll(io.LimitReader(f, wire.MaxFile+1))
	if err != nil {
		return meaning{}, err
	}
	text := bytes.TrimPrefix(data, []byte("\ufeff"))
	if trimmed := bytes.TrimLeft(text, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		fields, err := wire.Object(text)
		if err == nil {
			what, ok, err := r.object(text, fields, info, id)
			if ok && (err == nil || isJSON(name)) {
				return what, err
			}
		} else if isJSON(name) {
			return meaning{}, &BadError{Name: name, Reason: err.Error()}
		}
	} else if isJSON(name) && !json.Valid(text) {
		_, err := wire.Object(text)
		return meaning{}, &BadError{Name: name, Reason: err.Error()}
	}
	if len(data) <= wire.MaxBody && utf8.Valid(data) {
		m := r.filled(&wire.Message{Subject: strings.ToValidUTF8(name, "\ufffd"), Body: string(data)}, info, id)
		if Check(m) == nil {
			return meaning{message: m}, nil
		}
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return meaning{}, err
	}
	return r.attached(f, info, id, name)
}

// object reads a JSON object: an event, what a person says to a session, or a
// message. ok is false for one with none of our fields: that is text.
func (r *room) object(data []byte, fields []wire.Field, info fs.FileInfo, id wire.ID) (meaning, bool, error) {
	e, err := wire.Adopt(data)
	if err == nil {
		e.Source, e.EventID = "drop", string(id)
		return meaning{event: &e}, true, nil
	}
	if !errors.Is(err, wire.ErrNotEvent) {
		return meaning{}, true, &BadError{Reason: err.Error()}
	}
	body, human, err := wire.HumanText(data, fields)
	if err != nil && human {
		return meaning{}, true, &BadError{Reason: err.Error()}
	}
	if human {
		var line bytes.Buffer
		json.Compact(&line, data)
		m := r.filled(&wire.Message{Type: wire.TypeHumanInput, Body: body, Payload: line.Bytes()}, info, id)
		if err := Check(m); err != nil {
			return meaning{}, true, &BadError{Reason: err.Error()}
		}
		return meaning{message: m}, true, nil
	}
	if !wire.IsMessage(fields) {
		return meaning{}, false, nil
	}
	theirs := json.RawMessage(nil)
	kept := fields[:0:0]
	var own wire.ID
	for _, f := range fields {
		if f.Key != "id" || string(f.Raw) == "null" {
			kept = append(kept, f)
			continue
		}
		var s string
		if json.Unmarshal(f.Raw, &s) != nil {
			kept = append(kept, f) // the wrong type: said below, with its place
			continue
		}
		if own, err = wire.ParseID(s); err != nil || own.Time().After(time.Now().Add(24*time.Hour)) {
			own, theirs = "", f.Raw
		}
	}
	m, err := wire.FromFields(data, kept, r.box.store.Team)
	if err != nil {
		return meaning{}, true, &BadError{Reason: err.Error()}
	}
	if own == "" {
		own = id
	}
	if theirs != nil {
		m.SetMeta("id", theirs)
	}
	if m.Type == wire.TypePermissionReply {
		// A file is no answer to a question about a permission.
		m.Type = ""
		m.SetMeta("type", json.RawMessage(`"permission_reply"`))
	}
	m = r.filled(m, info, own)
	if err := Check(m); err != nil {
		return meaning{}, true, &BadError{Reason: err.Error()}
	}
	return meaning{message: m}, true, nil
}

// filled completes a dropped message. Where it came from is said by us.
func (r *room) filled(m *wire.Message, info fs.FileInfo, id wire.ID) *wire.Message {
	m.ID = id
	if m.From.Agent == "" {
		m.From = wire.Address{Agent: "drop", Team: r.box.store.Team}
	}
	if len(m.To) == 0 {
		m.To = []wire.Address{r.box.Address()}
	}
	if m.SentAt.IsZero() {
		m.SentAt = info.ModTime().UTC()
		if y := m.SentAt.Year(); y < 1 || y > 9999 { // touch can say so, RFC 3339 cannot
			m.SentAt = time.Now().UTC()
		}
	}
	o := &wire.Origin{Via: "drop", UID: uidOf(info)}
	if m.Origin != nil {
		o.Extra = m.Origin.Extra
	}
	m.Origin = o
	return m
}

// attached makes a message of a file that is no text, or too long for one.
func (r *room) attached(f *os.File, info fs.FileInfo, id wire.ID, name string) (meaning, error) {
	clean := strings.ToValidUTF8(name, "\ufffd")
	a, err := r.box.store.Attach(clean, f)
	if err != nil {
		return meaning{}, err
	}
	m := r.filled(&wire.Message{Subject: clean, Body: fmt.Sprintf("(the file is attached, %d bytes)", a.Size), Attachments: []wire.Attachment{a}}, info, id)
	return meaning{message: m}, nil
}
