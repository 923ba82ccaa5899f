package mailbox

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
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
	Bad     int
	Waiting int   // not taken in yet: look again in a second
	Why     error // why the last of those waits
}

func (t *TakenIn) wait(n int, why error) { t.Waiting, t.Why = t.Waiting+n, why }

// takeInLock is how long a look waits for a lock: a delivery holds one for an instant.
const takeInLock = 20 * time.Millisecond

// takeInFor is how long a look takes in what was dropped. Tests shorten it.
var takeInFor = 2 * time.Second

// isPassedOver reports whether a name is one that editors, browsers and copiers give to what is not
// finished, or that is hidden.
func isPassedOver(name string) bool {
	for _, end := range []string{"~", ".tmp", ".part", ".swp", ".crdownload", "___jb_tmp___", "___jb_old___"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	isAutosave := strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#")
	return isAutosave || name == "4913" || strings.HasPrefix(name, ".")
}

// begunName takes the name of a dropped file apart that is being taken in: <id>.<original name>.drop
func begunName(name string) (id wire.ID, original string, ok bool) {
	name, isDrop := strings.CutSuffix(name, ".drop")
	before, original, _ := strings.Cut(name, ".")
	return wire.ID(before), original, isDrop && wire.IsID(before)
}

// TakeIn takes in what was dropped into the mailbox by hand: files in inbox/ and, under foreign names, in inbox/new/.
// Each becomes a message, an event, or a file in bad with the reason; exactly once, also when killed at any point,
// since a file is renamed to the id that it will have before it is read. A file that a process has open for writing is
// left for later. While another process takes in, TakeIn returns at once. After two seconds, or at a lock that is held,
// the rest is left for the next look.
func (b *Box) TakeIn(ctx context.Context) (t TakenIn, err error) {
	if err := b.Present(); err != nil || b.host != "" || !wire.IsName(string(b.agent)) { // a retired one is looked at alone
		return t, err
	}
	impatient := *b.store
	impatient.LockTimeout = min(cmp.Or(b.store.LockTimeout, takeInLock), takeInLock)
	b = impatient.Box(b.agent)
	b.putBackAside(ctx)
	found, begun, err := b.drops()
	if err != nil || len(found)+len(begun) == 0 {
		return t, err
	}
	l, err := b.store.locks.Lock(ctx, b.in()+".drops", lockfile.Exclusive, 0, b.Present)
	if _, isHeld := errors.AsType[*lockfile.HeldError](err); isHeld || isUnwritable(err) {
		// Held: another is at it; should that one be killed, what it has begun waits.
		t.wait(len(found)+len(begun), err)
		return t, nil
	}
	if err != nil {
		return t, err
	}
	defer l.Unlock()
	// Looked at anew: another may have taken some in meanwhile.
	if found, begun, err = b.drops(); err != nil {
		return t, err
	}
	root := b.store.root
	if len(begun) > 0 { // by others, who may have been killed before they had synced
		err := errors.Join(root.Sync(b.in("inbox/tmp")), root.Sync(b.in("inbox")), root.Sync(b.in("inbox/new")))
		if err != nil {
			t.wait(len(begun), err)
			begun = nil
		}
	}
	end, all := time.Now().Add(takeInFor), slices.Concat(begun, found)
	for i, file := range all {
		var err error
		if i < len(begun) {
			err = b.finish(ctx, file, false, &t)
		} else {
			err = b.begin(ctx, file, &t)
		}
		if err != nil {
			t.wait(1, err)
		}
		_, isHeld := errors.AsType[*lockfile.HeldError](err)
		isOver := isHeld || ctx.Err() != nil || time.Now().After(end)
		if left := len(all) - i - 1; isOver && left > 0 {
			t.wait(left, cmp.Or(err, errors.New("the next read continues")))
			break
		}
	}
	return t, nil
}

// putBackAside makes unread again what the first generation had set aside: messages that were taken too
// often. What cannot be put back stays for the next look.
func (b *Box) putBackAside(ctx context.Context) {
	aside := place{Unread, b.in("inbox/aside")}
	ids, err := b.list(aside)
	if err != nil || len(ids) == 0 {
		return
	}
	b.locked(ctx, "inbox", func() error {
		return b.locked(ctx, "reader", func() error {
			for _, id := range ids {
				to, isThere, err := b.locate(id) // then this one is a duplicate
				if !isThere {
					to = b.unread()
				}
				if err == nil {
					b.move(id, aside, to)
				}
			}
			return nil
		})
	})
}

// drops lists the files that may be taken in, the oldest first, and what somebody began to take in and did not finish.
func (b *Box) drops() (found, begun []string, err error) {
	written := map[string]time.Time{}
	isOurs := func(name string) bool { return slices.Contains(inboxDirs, name) }
	err = cmp.Or(b.droppedIn("inbox", isOurs, written), b.droppedIn("inbox/new", isMessageFile, written))
	if err != nil {
		return nil, nil, err
	}
	found = slices.SortedFunc(maps.Keys(written), func(a, b string) int {
		return cmp.Or(written[a].Compare(written[b]), strings.Compare(a, b))
	})
	names, err := b.store.root.Names(b.in("inbox/tmp"))
	for _, name := range names {
		if _, _, isBegun := begunName(name); isBegun {
			begun = append(begun, name)
		}
	}
	return found, begun, err
}

// droppedIn adds when each file of a directory that may be taken in was written.
func (b *Box) droppedIn(dir string, isOurs func(name string) bool, written map[string]time.Time) error {
	names, err := b.store.root.Names(b.in(dir))
	for _, name := range names {
		if isOurs(name) || isPassedOver(name) {
			continue
		}
		if info, err := b.store.root.Lstat(b.in(dir, name)); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
			written[b.in(dir, name)] = info.ModTime()
		}
	}
	return err
}

// inboxDirs are the directories of an inbox: a file in the place of one is no drop.
var inboxDirs = []string{"tmp", "new", "cur", "done", "withdrawn", "superseded", "bad"}

// beingWritten reports whether some process has the file open for writing, or may have: where the system
// does not tell, a file is left alone until it has not changed for a second. certain: the system tells.
// Until f is closed, who opens it for writing waits.
func beingWritten(f *os.File) (writing, certain bool) {
	certain, busy := readLease(f)
	if certain || busy {
		return busy, certain
	}
	info, err := f.Stat()
	return err != nil || time.Since(info.ModTime()).Abs() < time.Second, false
}

// begin takes one dropped file in: nobody writes it, then it is renamed to the id that it will have, then read. The
// error is why it waits.
func (b *Box) begin(ctx context.Context, file string, t *TakenIn) error {
	root, tmp := b.store.root, b.in("inbox/tmp")
	f, err := root.Open(file)
	if err != nil {
		return nil // gone, or not to be opened by us: doctor names it
	}
	defer f.Close()
	writing, certain := beingWritten(f)
	if writing {
		return errors.New("somebody may still be writing it")
	}
	if err := b.mkdir(tmp); err != nil {
		return err
	}
	name := string(wire.NewID()) + "." + cutName(path.Base(file)) + ".drop"
	err = root.Move(file, tmp+"/"+name)
	f.Close() // and with it the lease
	if absent(err) {
		return nil
	}
	if err == nil {
		// What is published must not find its original in the inbox after a power cut: it would be taken in
		// again, under another id.
		err = errors.Join(root.Sync(tmp), root.Sync(path.Dir(file)))
	}
	if err != nil {
		return err
	}
	return b.finish(ctx, name, certain, t)
}

// finish publishes a file under the id in its name, and then lets go of the original. Any step may be
// repeated by another process after a kill. certain says that nobody has it open for writing. The error is why
// it waits.
func (b *Box) finish(ctx context.Context, file string, certain bool, t *TakenIn) error {
	root := b.store.root
	id, name, _ := begunName(file)
	file = b.in("inbox/tmp", file)
	f, err := root.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	isKnown, err := b.publishDropped(ctx, f, id, name)
	bad, isBad := errors.AsType[*BadError](err)
	switch {
	case isBad:
		if err = b.setAside(file, name, bad.Reason); err == nil {
			t.Bad++
		}
	case err != nil: // a full disk, say: it stays and is finished later
	case certain && !isKnown:
		root.Remove(file)
	default: // somebody may write it still, or it says again what is known
		if kept := b.archived("drops"); b.mkdir(kept) == nil {
			root.Move(file, kept+"/"+strings.TrimSuffix(path.Base(file), ".drop"))
		}
	}
	return err
}

// publishDropped makes a message or an event of a dropped file. isKnown: it is a message with an id of its own that
// was here before. A *BadError says that it can be neither, or has changed meanwhile.
func (b *Box) publishDropped(ctx context.Context, f *os.File, id wire.ID, name string) (isKnown bool, err error) {
	before, err := f.Stat()
	if err != nil {
		return false, err
	}
	m, e, err := b.understand(f, before, id, name)
	switch {
	case err != nil:
	case e != nil:
		err = b.Log().AppendSync(ctx, *e)
	default:
		isKnown, err = b.deliverDropped(ctx, m, id)
	}
	if err != nil {
		return false, err
	}
	after, err := f.Stat()
	if err != nil || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
		return false, &BadError{Reason: "changed while it was ingested as " + string(id)}
	}
	return isKnown, nil
}

// deliverDropped delivers a dropped message. Where another message has its id already, it gets ours. isKnown: the
// message itself was here before.
func (b *Box) deliverDropped(ctx context.Context, m *wire.Message, ours wire.ID) (isKnown bool, err error) {
	p := &Post{Message: m, To: []*Box{b}, Given: true}
	Deliver(ctx, p)
	if o := p.Outcomes[0]; o.Err != nil || !o.Known || m.ID == ours {
		return false, o.Err
	}
	it, err := b.Get(m.ID)
	if err != nil {
		return false, fmt.Errorf("cannot read the message with its id: %v", err) // which may be bad; the dropped one is not
	}
	if it.Body == m.Body && it.Subject == m.Subject && it.From == m.From {
		return true, nil
	}
	m.SetMeta("id", wire.Quote(string(m.ID)))
	m.ID = ours
	Deliver(ctx, p)
	return false, p.Outcomes[0].Err
}

// understand reads a dropped file: it is a message or an event. A *BadError says that it can be neither.
func (b *Box) understand(f *os.File, info fs.FileInfo, id wire.ID, name string) (*wire.Message, *wire.Event, error) {
	if info.Size() == 0 {
		// Only files with content are taken in: what was in it is gone.
		return nil, nil, &BadError{Name: name, Reason: "its content was lost, probably in a power cut"}
	}
	data, err := io.ReadAll(io.LimitReader(f, wire.MaxFile+1))
	if err != nil {
		return nil, nil, err
	}
	text := bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(data) <= wire.MaxFile && (isJSON(name) || bytes.HasPrefix(bytes.TrimSpace(text), []byte("{"))) {
		m, e, err := b.understandJSON(text, info, id)
		if err == nil && (m != nil || e != nil) {
			return m, e, nil
		}
		if err != nil && isJSON(name) {
			return nil, nil, &BadError{Name: name, Reason: err.Error()}
		}
	}
	m := b.fill(&wire.Message{Subject: strings.ToValidUTF8(name, "\ufffd"), Body: string(data)}, info, id)
	if len(data) <= wire.MaxBody && utf8.Valid(data) && Check(m) == nil {
		return m, nil, nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, nil, err
	}
	a, err := b.store.Attach(m.Subject, f)
	m.Body, m.Attachments = fmt.Sprintf("(the file is attached, %d bytes)", a.Size), []wire.Attachment{a}
	return m, nil, err
}

// understandJSON reads a JSON object: an event, what a person says to a session, or a message. Nothing: one with none
// of our fields, and other JSON, which is text; and a message that is too large once it is filled in.
func (b *Box) understandJSON(data []byte, info fs.FileInfo, id wire.ID) (*wire.Message, *wire.Event, error) {
	e, err := wire.AdoptDropped(data)
	if err == nil {
		e.Source, e.EventID = "drop", string(id)
		return nil, &e, nil
	}
	if err != wire.ErrNotEvent {
		return nil, nil, err
	}
	m := &wire.Message{Type: wire.TypeHumanInput}
	body, isHuman, err := wire.HumanText(data)
	if isHuman {
		var line bytes.Buffer
		json.Compact(&line, data)
		m.Body, m.Payload = body, line.Bytes()
	} else if m, err = wire.DecodeDropped(data, b.store.Team); errors.Is(err, wire.ErrNotMessage) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if m.ID.Time().After(time.Now().Add(24 * time.Hour)) {
		m.SetMeta("id", wire.Quote(string(m.ID)))
	} else {
		id = cmp.Or(m.ID, id)
	}
	if m.Type == wire.TypePermissionReply {
		// A file is no answer to a question about a permission.
		m.Type = ""
		m.SetMeta("type", wire.Quote(wire.TypePermissionReply))
	}
	m = b.fill(m, info, id)
	if whole, err := m.MarshalJSON(); err == nil && len(whole) >= wire.MaxFile { // a line feed follows
		return nil, nil, nil
	}
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
