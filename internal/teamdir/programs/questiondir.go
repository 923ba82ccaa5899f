package programs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/wire"
)

// A program that atm does not run has its questions answered by a process of its own, which waits for the answer
// (cmd/internal/hook). For each question there is a directory with that process's control socket. What such a process has
// left that was killed is a socket on which nobody listens.

// questionsDir, in a member's directory, has a directory for each of these questions.
const questionsDir = "/run/asks"

// questionDir returns the directory of a question. Its name is short, for the socket's path, and safe, for the id may be
// the program's own.
func questionDir(name wire.Name, id string) string {
	sum := sha256.Sum256([]byte(id))
	return string(name) + questionsDir + "/" + hex.EncodeToString(sum[:6])
}

// leftAfter is how old a question's directory is at least before anybody looks whether it is served: most are.
const leftAfter = time.Minute

// ListenToQuestion makes the directory of a member's question, and listens in it. The server is nil if another process does.
// It has a lock, so that of two that are told of one question only one listens.
func ListenToQuestion(ctx context.Context, t *teamdir.Team, name wire.Name, id string) (*control.Server, error) {
	lock, err := t.Locks().Lock(ctx, string(name)+".asks", lockfile.Exclusive, lockfile.DefaultTimeout, t.Box(name).CheckPresent)
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	if IsServed(t, name, id) {
		return nil, nil
	}
	dir, err := makeQuestionDir(ctx, t, name, id)
	if err != nil {
		return nil, err
	}
	return control.Listen(dir)
}

// makeQuestionDir makes the directory of a member's question, and removes those that killed processes have left. The
// result is its path.
func makeQuestionDir(ctx context.Context, t *teamdir.Team, name wire.Name, id string) (string, error) {
	all, dir := string(name)+questionsDir, questionDir(name, id)
	old, _ := t.Dir().Names(all) // there is none, usually
	for _, file := range old {
		info, err := t.Dir().Lstat(all + "/" + file)
		if err == nil && time.Since(info.ModTime()) > leftAfter && errors.Is(dialIn(ctx, t, all+"/"+file), control.ErrNoRunner) {
			t.Dir().RemoveAll(all + "/" + file)
		}
	}
	return t.Dir().Join(dir), cmp.Or(t.Dir().Mkdir(path.Dir(all)), t.Dir().Mkdir(all), t.Dir().Mkdir(dir))
}

// RemoveQuestionDir removes the directory of a question, whose process has closed its socket.
func RemoveQuestionDir(t *teamdir.Team, name wire.Name, id string) error {
	return t.Dir().RemoveAll(questionDir(name, id))
}

// DialQuestion connects to the process that waits for the answer to a member's question, as control.Dial does.
// ErrNoRunner: there is none, or no more.
func DialQuestion(ctx context.Context, t *teamdir.Team, name wire.Name, id string) (*control.Client, error) {
	dir := questionDir(name, id)
	for d := dir; d != "."; d = path.Dir(d) { // none is a link, to another member's perhaps
		if t.Dir().IsDir(d) != nil {
			return nil, control.ErrNoRunner
		}
	}
	return control.Dial(ctx, t.Dir().Join(dir))
}

func dialIn(ctx context.Context, t *teamdir.Team, dir string) error {
	c, err := control.Dial(ctx, t.Dir().Join(dir))
	if err == nil {
		c.Close()
	}
	return err
}

// IsServed reports whether a process waits for the answer to a question. It takes control.DialTimeout if that process is
// suspended.
func IsServed(t *teamdir.Team, name wire.Name, id string) bool {
	if id == "" {
		return false
	}
	c, err := DialQuestion(context.Background(), t, name, id)
	if err == nil {
		c.Close()
	}
	return !errors.Is(err, control.ErrNoRunner)
}
