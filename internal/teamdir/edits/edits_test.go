package edits

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/wire"
)

func init() { askGit = time.Minute }

// Two members at one file are told once, both of them; a claim is told as one, and what was committed is no matter.
func TestEdits(t *testing.T) {
	team, repo := teamtest.RepositoryTeam(t, nil)
	teamtest.Must(t, team.Store.Create(t.Context(), "alice"))
	file := filepath.Join(repo, "sub", "b.txt")
	edit := func(by wire.Name, path string) {
		t.Helper()
		teamtest.Must(t, NoteEdit(t.Context(), team, team.Box(by), path, nil))
	}
	told := func(name wire.Name, want ...string) {
		t.Helper()
		got := teamtest.UnreadOf(t, team, name)
		if len(got) != len(want) {
			t.Fatalf("%s has %q, not %q", name, got, want)
		}
		for i := range want {
			got[i] = regexp.MustCompile(`\d+s ago`).ReplaceAllString(got[i], "just now") // on a busy machine
			if !strings.Contains(got[i], want[i]) {
				t.Errorf("%s was told %q, not %q", name, got[i], want[i])
			}
		}
	}
	edit("alice", file)
	edit("alice", file)
	told("alice")
	edit("bob", file)
	const toAlice, toBob = `bob edits "sub/b.txt", which you edited just now: atm send bob "…"`, `you edit "sub/b.txt", which alice edited just now: atm send alice "…"; if you go on: atm claim PATH`
	told("alice", toAlice)
	told("bob", toBob)
	edit("alice", file)
	edit("bob", file)
	link := filepath.Join(repo, "link")
	teamtest.Must(t, os.Symlink("sub", link))
	edit("bob", filepath.Join(link, "b.txt"))
	told("alice", toAlice)
	told("bob", toBob)
	if all := Overlaps(t.Context(), team); len(all) != 1 || all[0].Path != file || !slices.Equal(all[0].Members, []wire.Name{"alice", "bob"}) {
		t.Errorf("overlaps: %+v", all)
	}

	// A file that its first editor has committed, and another one of the same name in another directory.
	other := filepath.Join(repo, "c.txt")
	edit("alice", other)
	teamtest.Must(t, os.WriteFile(other, nil, 0o600))
	teamtest.GitIn(t, repo, "add", ".")
	t.Setenv("GIT_COMMITTER_DATE", "2099-01-01T00:00:00Z") // in a later second than the edit
	teamtest.GitIn(t, repo, "commit", "-q", "-m", "c")
	edit("bob", other)
	edit("bob", filepath.Join(repo, "b.txt"))
	told("alice", toAlice)
	if all := Overlaps(t.Context(), team); len(all) != 0 { // the commit has the first file as well
		t.Errorf("overlaps after the commit: %+v", all)
	}

	// A claim of a directory, which git has no say in.
	claims, err := ClaimPaths(t.Context(), team, "alice", []string{filepath.Join(repo, "new")}, time.Hour)
	teamtest.Must(t, err)
	edit("bob", filepath.Join(repo, "new", "deep", "x"))
	told("alice", toAlice, `bob edits "new/deep/x", which you have claimed until `)
	told("bob", toBob, `you edit "new/deep/x", which alice has claimed until `)
	for _, path := range []string{filepath.Join(repo, "new", "deep"), repo} {
		if _, err := ClaimPaths(t.Context(), team, "bob", []string{file, path}, time.Hour); err == nil {
			t.Errorf("bob has claimed %s beside alice's claim", path)
		}
	}
	if all, err := Claims(team); len(all) != 1 || err != nil {
		t.Errorf("claims: %+v, %v", all, err)
	}
	if had, err := ReleaseClaim(t.Context(), team, "bob", claims[0].Path); had != "" || err != nil {
		t.Errorf("bob released alice's claim: %v, %v", had, err)
	}
	if had, err := ReleaseClaim(t.Context(), team, "alice", claims[0].Path); had != "alice" || err != nil {
		t.Errorf("alice's claim is not released: %v, %v", had, err)
	}
	if all, err := Claims(team); len(all) != 0 || err != nil {
		t.Errorf("claims: %+v, %v", all, err)
	}
}

// What others may do to the files of .edits keeps nobody from editing, and does not get out of the directory.
func TestHostileEdits(t *testing.T) {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "alice", "bob")
	dir := t.TempDir()
	for _, path := range []string{"relative", dir + "/nul\x00", "/" + strings.Repeat("x", 5000)} {
		if err := NoteEdit(t.Context(), team, team.Box("bob"), path, nil); err == nil {
			t.Errorf("%.20q was noted", path)
		}
	}
	teamtest.Must(t, NoteEdit(t.Context(), team, team.Box("bob"), team.Dir().Join("bob/inbox/x"), nil))
	if names, _ := team.Dir().Names(teamdir.EditsDir); len(names) != 0 {
		t.Errorf("noted: %v", names)
	}
	file := filepath.Join(dir, "a\n\x1b[31m\"b")
	real, err := durable.RealPath(file)
	teamtest.Must(t, err)
	name := editsName(real)
	teamtest.Must(t, team.Dir().MkdirAll(teamdir.EditsDir))
	for _, content := range []string{
		"{", `{"path":"/else"}`, strings.Repeat(" ", maxEditFile+1),
		`{"path":"` + real[:3] + `","edits":[{"by":"../bob","at":"2026-01-01T00:00:00Z"}]}`,
	} {
		teamtest.Must(t, team.Dir().Replace(name, []byte(content), false))
		damaged, err := DamagedEdits(team)
		if err != nil || !slices.Equal(damaged, []string{team.Dir().Join(name)}) {
			t.Errorf("%.20q: damaged are %v, %v", content, damaged, err)
		}
		teamtest.Must(t, NoteEdit(t.Context(), team, team.Box("bob"), file, nil))
		if f, err := readEdits(team, name); err != nil || len(f.Edits) != 1 || f.Edits[0].By != "bob" {
			t.Errorf("%.20q: %+v, %v", content, f, err)
		}
	}
	planted := fileEdits{Path: real, Claim: &Claim{Path: real, By: "../bob", Until: time.Now().Add(time.Hour)},
		Edits: []Edit{{"../bob", time.Now(), wire.NewID()}, {"alice", time.Now().Add(time.Hour), wire.NewID()}, {"alice", time.Now(), "x"}}}
	if planted.expire(time.Now()); planted.Claim != nil || len(planted.Edits) > 0 {
		t.Errorf("planted: %+v", planted)
	}
	teamtest.Must(t, NoteEdit(t.Context(), team, team.Box("alice"), file, nil))
	if got := teamtest.UnreadOf(t, team, "bob"); len(got) != 1 || !strings.Contains(got[0], `/a \x1b[31m'b", which you edited`) {
		t.Errorf("bob was told %q", got)
	}

	// What is old goes, and a directory in a file's place stays and is named.
	old := time.Now().Add(-MaxClaim - time.Hour)
	teamtest.Must(t, os.Chtimes(team.Dir().Join(name), old, old))
	teamtest.Must(t, team.Dir().Mkdir(teamdir.EditsDir+"/x.json"))
	teamtest.Must(t, PruneEdits(t.Context(), team))
	damaged, err := DamagedEdits(team)
	if names, _ := team.Dir().Names(teamdir.EditsDir); err != nil || !slices.Equal(damaged, []string{team.Dir().Join(teamdir.EditsDir + "/x.json")}) || len(names) != 1 {
		t.Errorf("%v of %v, %v", damaged, names, err)
	}
}

// Members that edit at the same time are all told of all others, once.
func TestEditsAtOnce(t *testing.T) {
	names := []wire.Name{"a", "b", "c", "d"}
	team, file := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), names...), filepath.Join(t.TempDir(), "x")
	var all sync.WaitGroup
	for _, n := range names {
		all.Go(func() {
			for range 5 {
				if err := NoteEdit(t.Context(), team, team.Box(n), file, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for _, n := range names {
		if got := teamtest.UnreadOf(t, team, n); len(got) != len(names)-1 {
			t.Errorf("%s was told %d times: %q", n, len(got), got)
		}
	}
}

// Of two claims that exclude each other one is granted, and of the other's paths none is claimed.
func TestClaimsAtOnce(t *testing.T) {
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "alice", "bob")
	for range 50 {
		dir := t.TempDir()
		var both sync.WaitGroup
		var errs [2]error
		both.Go(func() {
			_, errs[0] = ClaimPaths(t.Context(), team, "alice", []string{dir + "/x/y", dir + "/d"}, time.Hour)
		})
		both.Go(func() {
			_, errs[1] = ClaimPaths(t.Context(), team, "bob", []string{dir + "/z", dir + "/d/a.go"}, time.Hour)
		})
		both.Wait()
		all, err := Claims(team)
		teamtest.Must(t, err)
		mine := slices.DeleteFunc(all, func(c Claim) bool { return !isWithin(dir, c.Path) })
		if (errs[0] == nil) == (errs[1] == nil) || len(mine) != 2 || mine[0].By != mine[1].By {
			t.Fatalf("both were granted, or neither: %v, %v; claims: %v", errs[0], errs[1], mine)
		}
	}
}
