package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// guesses are command lines that a language model types before it has read any
// help, as alice in a team with bob and carol. Message 9f3a1c is bob's question to
// her, read and owed; 77b0de is unread; 5c5c5c is what she sent to bob. Behind the
// tabs is a part of the error that names the right spelling; nothing there: it just
// works.
const guesses = `
atm
atm help
atm --help
atm -h
atm help send
atm help mail				atm read reads
atm send --help
atm send -h
atm --version
atm version
atm -v

atm send bob "hello"
atm send bob hello there
atm send @bob "hello"
atm send bob: hello
atm send to bob "hello"
atm send --to bob "hello"
atm send --to=bob --message "hello"
atm send --to bob --body "hello"
atm send --to bob --text "hello"
atm send --to bob --content "hello"
atm send --recipient bob --text "hello"
atm send -t bob -m "hello"
atm send -m "hello" bob
atm send bob -m "hello"
atm send bob --message="hello"
atm send bob --subject "Hi" "hello"
atm send bob -s "Hi" "hello"
atm send bob -s "Hi" -m "hello"
atm send bob --title Hi hello
atm send bob "hello" --as alice
atm --as alice send bob "hello"
atm send --as alice --to bob --subject "Hi" --body "hello"
atm send bob,carol "hello"
atm send bob, carol hello		atm send bob,carol "hello"
atm send bob carol "hello there"	atm send bob,carol "hello there"
atm send bob and carol hello		atm send bob,carol "hello"
atm send bob ,carol hello		atm send bob,carol "hello"
atm send --to bob --to carol "hello"
atm send --to bob,carol "hello"
atm send all "hello"
atm send everyone "hello"
atm send --all "hello"
atm send "bob" "hello" --urgent
atm send bob hello --urgent true	--urgent
atm send bob hello --urgent=true
atm send bob hello --priority high
atm send bob hello --priority=urgent
atm send bob hello --ack
atm send bob hello --require-ack
atm send bob hello --request-ack
atm send bob hello --no-reply
atm send bob hello --fyi
atm send bob hello --wait		--wait-reply
atm send bob hello --wait-reply --timeout 50ms	no answer within
atm send bob hello --wait-reply 50ms	no answer within
atm send bob hello --reply-to 9f3a1c
atm send bob hello --in-reply-to 9f3a1c
atm send bob hello --cc carol
atm send bob hello --from alice		--as NAME
atm send bob hello --json
atm send bob hello --attach notes.txt
atm send bob hello --attachment notes.txt
atm send bob --file notes.txt
atm send bob -f notes.txt
atm send bob < notes.txt
atm send bob - < notes.txt
atm send bob --stdin < notes.txt
echo hello | atm send bob
echo hello | atm send bob -
cat notes.txt | atm send bob "see:"	bytes on stdin
atm send bob "$(cat notes.txt)"
atm send "bob hello"			?
atm send bobb hello			"bob"
atm send Bob hello			"bob"
atm send dave hello			members: alice, bob, carol
atm send bob				atm send bob
atm send				to whom?
atm send hello				no text
atm send bob "- one
- two"
atm send bob -- --flag is text
atm send bob --verbose hello		--
atm send bob hello --thread 9f3a1c
atm send bob "hello" --quiet
atm send bob --message "hello" --json
atm send carol,bob "hello" --subject Hi --ack
atm message bob "hello"
atm msg bob "hello"
atm tell bob "hello"
atm write bob "hello"
atm dm bob "hello"
atm broadcast "hello"			atm send all
atm sendto bob hello			atm send
atm sned bob hello			atm send
atm mail bob hello			atm send NAME
atm notify bob hello			atm send

atm read
atm read --unread
atm read --new
atm read --json
atm read -n 5
atm read --limit 5
atm read --limit=5
atm read -n5				?
atm read --peek
atm read --no-mark
atm read --all				atm ls --all
atm read -a				atm ls --all
atm read bob				atm read --from bob
atm read alice
atm read --from bob
atm read --from @bob
atm read --as alice
atm read --agent alice			--as NAME
atm read 77b0de
atm read 9f3a1c
atm read --id 9f3a1c
atm read --wait
atm read --wait 1s
atm read --wait=1s
atm read --wait 30			30s
atm read --wait --timeout 1s
atm read --wait --timeout 1		1s
atm read -w
atm read --last
atm read --follow --timeout 50ms
atm read --urgent
atm read --since 1h			--since
atm read --limit 1 --from bob
atm recv
atm receive
atm check
atm fetch
atm inbox
atm messages
atm poll				atm read --wait
atm mark 9f3a1c				atm read ID
atm read --json --limit 1
atm read --from bob --json
atm read --unread --json
atm inbox --json
atm unread				atm unread
atm unread 9f3a1c

atm ls
atm ls -a
atm ls -l
atm ls -la
atm ls --all
atm ls --unread
atm ls --new
atm ls bob
atm ls @bob
atm ls --agent bob
atm ls --from bob
atm ls --to bob				atm ls NAME
atm ls --limit 3
atm ls -n 3
atm ls --sent
atm ls --since 1d
atm ls --json
atm ls --count
atm ls --owed
atm list
atm list --unread
atm list --json
atm list --limit 10
atm list --all --json
atm ls --from bob --json
atm ls --unread --limit 5
atm inbox --unread
atm sent				atm ls --sent
atm outbox				atm ls --sent
atm count				atm ls --count

atm show 9f3a1c
atm show '#9f3a1c'
atm show 3a1c
atm show 01890000-0000-7000-8000-0000009f3a1c
atm show --raw 9f3a1c
atm show --json 9f3a1c
atm view 9f3a1c
atm open 9f3a1c
atm cat 9f3a1c
atm show bob				is a member
atm show				atm show 9f3a1c
atm get 9f3a1c

atm reply 9f3a1c "Yes."
atm reply 9f3a1c Yes, done.
atm reply 9f3a1c -m "Yes."
atm reply 9f3a1c --body "Yes."
atm reply 9f3a1c --text "Yes."
atm reply --message "Yes." 9f3a1c
atm reply --to 9f3a1c "Yes."		atm send NAME
atm reply bob "Yes."			atm send bob
atm reply 9f3a1c "Yes." --json
atm reply 9f3a1c < notes.txt
atm reply 9f3a1c --file notes.txt
atm reply 9f3a1c "Yes." --as alice
atm respond 9f3a1c "Yes."
atm answer 9f3a1c "Yes."
atm reply 9f3a1c			atm reply
atm reply-all 9f3a1c Yes		atm reply
atm ack 9f3a1c
atm ack 9f3a1c --text "on it"
atm ack 9f3a1c -m "on it"
atm ack 9f3a1c "on it"			?
atm acknowledge 9f3a1c
atm done 9f3a1c				atm ack
atm withdraw 5c5c5c
atm unsend 5c5c5c
atm undo 5c5c5c
atm delete 5c5c5c			atm withdraw
atm rm 5c5c5c				atm withdraw
atm forward 9f3a1c carol		atm send NAME
atm thread 9f3a1c
atm conversation 9f3a1c
atm search rebase
atm search "rebase" --from bob
atm search --since 1d rebase
atm grep rebase
atm find rebase
atm trace 5c5c5c
atm track 5c5c5c
atm trace 5c5c5c --json
atm thread 9f3a1c --json
atm search rebase --json
atm ack 9f3a1c --json
atm show 77b0de --json
atm ls --owed --json
atm history				atm history
atm log					atm watch
atm logs				atm watch
atm tail				atm watch
atm watch --since 1h --no-follow

atm wait --timeout 50ms
atm wait 1s
atm wait --for 1s
atm wait --reply 5c5c5c --timeout 50ms	no answer within
atm wait --reply 5c5c5c 50ms		no answer within
atm wait bob				atm wait --idle bob
atm wait --idle bob --timeout 50ms	not idle within
atm wait --from bob			atm read --wait --from

atm team
atm team ls
atm team list
atm team members			?
atm members				atm team
atm who					atm team
atm whoami
atm where
atm status
atm status bob
atm agents				atm team
atm ps					atm team
atm team --json
atm status --json
atm where --json
atm primer --as bob
atm help reply
atm read --help
atm team add dave
atm team rm dave			atm team retire
atm config				doctor
atm ui					atm team --watch
atm primer
atm whoami --json
atm status alice
atm status bob --json
atm team ls --json
atm team retire carol
atm init dave
atm events
atm events bob
atm history bob
atm pending --json
atm gc --dry-run
atm completion bash
atm doctor
atm pending
atm confirm bob				atm pending
atm deny bob				atm pending
atm approve				atm approve
`

// TestGuesses types them all, and counts: at least three in four just work, and 97
// in a hundred work or name the right spelling. A line that ends in ? does neither
// yet.
func TestGuesses(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh")
	}
	home := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(home, "bin")
	if err := errors.Join(os.Mkdir(bin, 0o700), os.Symlink(exe, filepath.Join(bin, "atm"))); err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=" + home, "ATM_AGENT=alice", "PATH=" + bin + ":" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}
	typed := func(dir, line string) (string, int) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sh", "-c", line)
		cmd.Dir, cmd.Env = dir, append(env, "ATM_ROOT="+filepath.Join(dir, ".atm"))
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	fixture := filepath.Join(home, "fixture")
	if err := os.Mkdir(fixture, 0o700); err != nil {
		t.Fatal(err)
	}
	const id = "01890000-0000-7000-8000-000000"
	made, code := typed(fixture, "atm init alice bob carol && echo notes >notes.txt &&"+
		"atm send alice 'Shall I rebase?' --ack --as bob --id "+id+"9f3a1c && atm read &&"+
		"atm send alice 'It is done.' --as bob --id "+id+"77b0de && atm send bob Hello --id "+id+"5c5c5c")
	if code != 0 {
		t.Fatal(made)
	}
	works, named, all := 0, 0, 0
	for _, g := range parseGuesses(guesses) {
		dir := filepath.Join(home, fmt.Sprint("try", all))
		all++
		if out, err := exec.Command("cp", "-a", fixture, dir).CombinedOutput(); err != nil {
			t.Fatal(string(out))
		}
		out, code := typed(dir, g.line)
		switch {
		case g.want == "" && code == 0:
			works++
		case g.want == "":
			t.Errorf("%s: exit %d\n%s", g.line, code, out)
		case g.want != "?" && code != 0 && strings.Contains(out, g.want):
			named++
		case g.want != "?":
			t.Errorf("%s: exit %d, does not name %q\n%s", g.line, code, g.want, out)
		}
	}
	t.Logf("%d guesses: %d work, %d more name the right spelling", all, works, named)
	if all < 170 || works*100 < all*75 || (works+named)*100 < all*97 {
		t.Errorf("of %d guesses %d work and %d more name the right spelling: too few", all, works, named)
	}
}

type guess struct{ line, want string }

// parseGuesses are the lines of the table; a line may go on behind a line feed in
// quotes.
func parseGuesses(table string) (out []guess) {
	for _, line := range strings.Split(strings.TrimSpace(table), "\n") {
		if len(out) > 0 && strings.Count(out[len(out)-1].line, `"`)%2 == 1 {
			out[len(out)-1].line += "\n" + line
			continue
		}
		if line == "" {
			continue
		}
		typed, want, _ := strings.Cut(line, "\t")
		out = append(out, guess{typed, strings.TrimSpace(want)})
	}
	return out
}
