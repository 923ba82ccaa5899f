package backup

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/config"
	"github.com/agentteammail/atm/wire"
)

// Restored is the result of Restore.
type Restored struct {
	keep.Moved
	Refused     []Refusal `json:"refused,omitempty"` // the first maxRefused
	MoreRefused int       `json:"more_refused,omitempty"`
}

// Refusal is an entry of a file that no backup contains. In JSON it is its name.
type Refusal struct{ Name, Reason string }

func (r Refusal) MarshalText() ([]byte, error) { return []byte(r.Name), nil }

// refusal is why an entry is refused, and the rest is restored.
type refusal string

func (r refusal) Error() string { return string(r) }

// A backup may come from anybody. What is restored takes about as much as the file has bytes: no entry has holes, and
// none but messages, which have a limit, is held in memory.
const (
	maxRefused = 100
	maxTeams   = 100  // that one restore makes: each takes a descriptor
	maxName    = 200  // bytes of a name that is refused
	maxPath    = 4096 // bytes of a name that is restored
	maxDepth   = 20   // directories in it

	maxUnsynced  = 1000
	maxBatch     = 1000     // messages that are restored at a time
	maxBatchSize = 16 << 20 // their bytes, but for one that is larger

	noSuchFile = refusal("a backup has no such file")
)

// maxMembers is how many members one restore makes. Tests shorten it.
var maxMembers = 10_000

type restorer struct {
	ctx      context.Context
	root     *teamdir.Root
	tar      *tar.Reader
	isLook   bool // whether nothing is restored: the first thing that would be is errNew
	inInbox  bool // whether this is the pass that restores members and their inboxes, and not the one before
	total    Restored
	hadLogs  map[wire.Address]bool // whether a mailbox had other events before the restore
	teams    int                   // that were made
	members  map[wire.Address]bool // that were not there
	progress func(messages int)

	unsynced map[string]func() error // directories that have new files

	batch     []*keep.Restoration // messages that were read and are not restored yet
	box       *maildir.Box        // whose they are
	entries   []string            // their names in the backup
	batchSize int                 // their bytes

	sent     []*sentCopy // that were read and are not restored yet
	sentSize int         // their bytes
}

// Restore restores a backup. It replaces nothing: it skips messages whose id exists, the events of a mailbox that has
// some, and other files that exist. It refuses what no backup contains, such as "../evil". After an error, what came
// before it is restored. It may be repeated, also when it was killed: see rootdir.BeginRestore, which its caller calls.
//
// The inboxes come last, and with them the members: before its log is whole, nobody can send to a new member or add
// events of its own. progress is called with the number of messages that are done.
func Restore(ctx context.Context, root *teamdir.Root, from io.ReadSeeker, progress func(messages int)) (Restored, error) {
	r := &restorer{ctx: ctx, root: root, hadLogs: map[wire.Address]bool{}, members: map[wire.Address]bool{},
		unsynced: map[string]func() error{}, progress: progress}
	err := r.restoreAll(from)
	if ctx.Err() == nil {
		r.inInbox = true
		err = cmp.Or(err, r.restoreAll(from), r.moveLater())
	}
	return r.total, err
}

// moveLater delivers what a backup of before v0.1.0 has to be sent later.
func (r *restorer) moveLater() (errs error) {
	teams, err := r.root.Teams()
	for _, name := range teams {
		if t, err := r.root.Team(name); err == nil {
			errs = errors.Join(errs, teamdir.MoveLater(r.ctx, t))
		}
	}
	return cmp.Or(err, errs)
}

// errNew says that a backup has something that is not there.
var errNew = errors.New("it is not there")

// Brings reports whether Restore would restore anything. Without that, what is returned is what it would return.
func Brings(ctx context.Context, root *teamdir.Root, from io.ReadSeeker) (there Restored, isNew bool, err error) {
	r := &restorer{ctx: ctx, root: root, isLook: true, hadLogs: map[wire.Address]bool{}, members: map[wire.Address]bool{}}
	err = r.restoreAll(from)
	if r.inInbox = true; err == nil {
		err = r.restoreAll(from)
	}
	if errors.Is(err, errNew) {
		return Restored{}, true, nil
	}
	return r.total, false, err
}

// restoreAll restores what belongs to one pass.
func (r *restorer) restoreAll(from io.ReadSeeker) error {
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r.tar = tar.NewReader(from)
	err := checkFormat(r.tar)
	for err == nil {
		err = r.restoreNext()
	}
	if err == io.EOF {
		err = nil
	}
	return cmp.Or(err, r.restoreBatch(), r.restoreSent(), r.syncDirs())
}

// restoreNext restores the next entry, or refuses it. At the end it returns io.EOF.
func (r *restorer) restoreNext() error {
	h, err := r.tar.Next()
	if err == io.EOF {
		return err
	}
	isDamaged := err != nil
	if err == nil {
		err = r.restoreEntry(h)
		isDamaged = errors.Is(err, io.ErrUnexpectedEOF)
	}
	if isDamaged {
		return fmt.Errorf("the backup is damaged (%w); what comes before is restored", err)
	}
	if why, isRefused := errors.AsType[refusal](err); isRefused {
		r.refuse(h.Name, string(why))
		err = nil
	}
	if err = cmp.Or(r.ctx.Err(), err); err != nil {
		err = fmt.Errorf("restore %s: %w", letter.Escape(h.Name), err)
	}
	return err
}

func (r *restorer) refuse(name, reason string) {
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "") + "…"
	}
	if len(r.total.Refused) < maxRefused {
		r.total.Refused = append(r.total.Refused, Refusal{name, reason})
	} else {
		r.total.MoreRefused++
	}
}

func (r *restorer) restoreEntry(h *tar.Header) error {
	teamName, name, _ := strings.Cut(path.Clean(h.Name), "/")
	first, below, _ := strings.Cut(name, "/")
	isAgent := wire.IsName(first)
	if isInInbox := isAgent && (below == "" || strings.HasPrefix(below, "inbox/")); isInInbox != r.inInbox {
		return nil
	}
	isDir := h.Typeflag == tar.TypeDir && (name == "" || isAgent && below == "" || dirs().MatchString(name))
	isFile := h.Typeflag == tar.TypeReg && files().MatchString(name)
	isSkipped := strings.Contains(name, "/.") || strings.HasPrefix(below, "inbox/tmp/") // as writeTree does
	isOurs := !isSkipped && wire.IsName(teamName) && (isAgent || name == "" || name == config.File || name[0] == '.')
	switch {
	case !isDir && !isFile || !isOurs:
		if h.Typeflag == tar.TypeDir {
			return nil
		}
		return noSuchFile
	case len(h.Name) > maxPath || strings.Count(name, "/") > maxDepth:
		return refusal("its name is too long")
	case hasHoles(h):
		return refusal("it has holes")
	}
	t, err := r.team(wire.Name(teamName))
	if err == nil && name != "" {
		content := durable.ReadUntil(r.ctx, r.tar)
		switch {
		case isAgent:
			err = r.restoreMember(t, t.Box(wire.Name(first)), h.Name, below, content)
		case isDir && r.isLook: // an empty directory says nothing
		case isDir:
			err = t.Dir().MkdirAll(name)
		case first == filestore.Dir:
			err = r.restoreAttachment(t, name, content)
		default:
			err = r.restoreFile(t, name, content)
		}
	}
	return asRefusal(err)
}

// asRefusal makes a refusal of an error that says that something does not fit into this root.
func asRefusal(err error) error {
	for _, misfit := range []error{durable.ErrNotDirectory, durable.ErrNotRegular, syscall.ENOTDIR, syscall.ENAMETOOLONG} {
		if errors.Is(err, misfit) {
			return refusal("it does not fit here: " + misfit.Error())
		}
	}
	return err
}

// hasHoles reports whether an entry is sparse: it then takes more than its part of the file.
func hasHoles(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// team opens a team, and makes it if there is none.
func (r *restorer) team(name wire.Name) (*teamdir.Team, error) {
	t, err := r.root.Team(name)
	if errors.Is(err, teamdir.ErrNoTeam) {
		if r.isLook {
			return nil, errNew
		}
		if r.teams++; r.teams > maxTeams {
			return nil, fmt.Errorf("the backup has more than %d teams; what comes before is restored", maxTeams)
		}
		return r.root.CreateTeam(name)
	}
	return t, err
}

// makeMember makes a member, unless there is one of that name, or it is not its turn.
func (r *restorer) makeMember(t *teamdir.Team, box *maildir.Box) error {
	err := box.CheckPresent()
	if !errors.Is(err, maildir.ErrNoAgent) {
		return err
	}
	if r.isLook {
		return errNew
	}
	if r.members[box.Address()] = true; len(r.members) > maxMembers {
		return fmt.Errorf("the backup has more than %d members; what comes before is restored", maxMembers)
	}
	if !r.inInbox {
		return nil
	}
	if err = t.Store.Create(r.ctx, box.Agent()); errors.Is(err, maildir.ErrExists) { // another process was quicker
		return nil
	}
	return err
}

func (r *restorer) restoreMember(t *teamdir.Team, box *maildir.Box, entry, below string, content io.Reader) error {
	if err := r.makeMember(t, box); err != nil || below == "" {
		return err
	}
	if m := messages().FindStringSubmatch(below); m != nil && wire.IsID(m[2]) {
		return r.restoreMessage(t, box, entry, m[1], m[2], content)
	}
	name := string(box.Agent()) + "/" + below
	switch {
	case strings.HasPrefix(below, "events/"):
		return r.restoreEvents(t, box, name, content)
	case isSentIndex(name):
		return r.readSent(&sentCopy{team: t, entry: entry, dir: path.Dir(name)}, name, content)
	}
	return r.restoreFile(t, name, content)
}

// restoreEvents restores a part of a log, unless the mailbox had another log before. Parts that are equal were left by
// a restore that did not finish.
func (r *restorer) restoreEvents(t *teamdir.Team, box *maildir.Box, name string, content io.Reader) error {
	hadLog, isKnown := r.hadLogs[box.Address()]
	existing, err := t.Dir().Open(name)
	switch {
	case err == nil:
		isEqual, err := isSame(existing, content)
		existing.Close()
		if err != nil {
			return err
		}
		hadLog = hadLog || !isEqual
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case !isKnown && !r.members[box.Address()]:
		seq, err := box.Log().LastSeq()
		if err != nil {
			return err
		}
		hadLog = seq > 0
	}
	r.hadLogs[box.Address()] = hadLog
	if hadLog || existing != nil {
		return nil
	}
	return r.restoreFile(t, name, content)
}

// isSame reports whether two readers have the same content.
func isSame(x, y io.Reader) (bool, error) {
	a, b := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, xErr := io.ReadFull(x, a)
		m, yErr := io.ReadFull(y, b)
		for _, err := range []error{xErr, yErr} {
			if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
				return false, err
			}
		}
		if !bytes.Equal(a[:n], b[:m]) || xErr != nil || yErr != nil {
			return bytes.Equal(a[:n], b[:m]), nil
		}
	}
}

// restoreMessage has a message restored with others of its mailbox.
func (r *restorer) restoreMessage(t *teamdir.Team, box *maildir.Box, entry, dir, id string, content io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(content, wire.MaxFile+1))
	if err != nil {
		return err
	}
	message, err := wire.Decode(data)
	if err != nil { // the next look at the mailbox moves it to bad, with the reason
		name := fmt.Sprintf("%s/inbox/%s/%s.json", box.Agent(), dir, id)
		return r.restoreFile(t, name, io.MultiReader(bytes.NewReader(data), content))
	}
	if r.isLook {
		r.total.Skipped++
		if _, err = box.Get(message.ID); errors.Is(err, maildir.ErrNotFound) {
			return errNew
		}
		return nil
	}
	dir, _, _ = strings.Cut(dir, "/")
	if len(r.batch) > 0 && r.box.Address() != box.Address() {
		err = r.restoreBatch()
	}
	r.box, r.batchSize = box, r.batchSize+len(data)
	r.batch, r.entries = append(r.batch, &keep.Restoration{Dir: dir, Data: data}), append(r.entries, entry)
	if err == nil && (len(r.batch) >= maxBatch || r.batchSize >= maxBatchSize) {
		err = r.restoreBatch()
	}
	return err
}

// restoreBatch restores the messages that were read, and counts them.
func (r *restorer) restoreBatch() (err error) {
	if len(r.batch) == 0 {
		return nil
	}
	keep.RestoreMessages(r.ctx, r.box, r.batch)
	for i, m := range r.batch {
		failed := asRefusal(m.Err)
		why, isRefused := errors.AsType[refusal](failed)
		switch {
		case isRefused:
			r.refuse(r.entries[i], string(why))
		case failed != nil:
			err = cmp.Or(err, fmt.Errorf("restore %s: %w", letter.Escape(r.entries[i]), failed))
		case m.IsRestored:
			r.total.Add(keep.Moved{Messages: 1, Bytes: int64(len(m.Data))})
		default:
			r.total.Skipped++
		}
	}
	r.batch, r.entries, r.batchSize = nil, nil, 0
	r.progress(r.total.Messages + r.total.Skipped)
	return err
}

// restoreAttachment restores a file whose name says what its content is.
func (r *restorer) restoreAttachment(t *teamdir.Team, name string, content io.Reader) error {
	want := path.Base(name)
	if !wire.IsSHA256(want) {
		return noSuchFile
	}
	return r.restoreFile(t, name, &checkedReader{content, sha256.New(), want})
}

// checkedReader fails at the end of a content that does not have the SHA-256 that it should have.
type checkedReader struct {
	io.Reader
	hash hash.Hash
	want string
}

func (c *checkedReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.hash.Write(p[:n])
	if err == io.EOF && hex.EncodeToString(c.hash.Sum(nil)) != c.want {
		err = refusal("its content is not the one that its name says")
	}
	return n, err
}

// restoreFile restores a file. Its directory is synced later, with others. An index of sent mail is not synced, as by a
// delivery: doctor can rebuild it.
func (r *restorer) restoreFile(t *teamdir.Team, name string, from io.Reader) error {
	if r.isLook {
		isThere, err := t.Dir().Exists(name)
		if err == nil && !isThere {
			err = errNew
		}
		return err
	}
	dir := path.Dir(name)
	err := t.Dir().MkdirAll(dir)
	if err == nil {
		err = publish(t.Dir(), name, from, !isSentIndex(name))
	}
	if err != nil || isSentIndex(name) {
		return err
	}
	r.unsynced[t.Dir().Join(dir)] = func() error { return t.Dir().Sync(dir) }
	if len(r.unsynced) < maxUnsynced {
		return nil
	}
	return r.syncDirs()
}

// publish writes a file, unless there is one.
func publish(dir *durable.Root, name string, from io.Reader, sync bool) error {
	exists, err := dir.Exists(name)
	if err == nil && !exists {
		err = dir.Publish(name, from, sync)
	}
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return err
}

// syncDirs makes the names of restored files survive a power cut.
func (r *restorer) syncDirs() (err error) {
	for _, sync := range r.unsynced {
		if failed := sync(); !errors.Is(failed, fs.ErrNotExist) { // moved meanwhile
			err = cmp.Or(err, failed)
		}
	}
	clear(r.unsynced)
	return err
}
