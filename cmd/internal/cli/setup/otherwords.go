package setup

import (
	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
)

// otherWords are what other programs call what the verbs here do.
var otherWords = []*cli.Command{
	cmdline.NoCommand("create", "a team: atm init NAME…; a member: atm team add NAME; a session: atm session new --agent NAME"),
	cmdline.NoCommand("setup", "a team: atm init NAME…; hooks of a coding agent: atm install TOOL"),
	cmdline.NoCommand("add join invite register add-agent add-member", "a member: atm team add NAME; another team: atm init --team TEAM NAME…"),
	cmdline.NoCommand("retire unregister kick leave", "atm team retire NAME"),
	cmdline.NoCommand("lead set-lead", "team.toml sets it: atm init --toml writes one to edit"),
	cmdline.NoCommand("rename", "names never change; atm team add NEW, atm team retire OLD"),
	cmdline.NoCommand("teams", "atm team ls lists the teams; atm team shows the members"),
	cmdline.NoCommand("ps top stats summary overview availability", "atm team shows who runs; atm team --watch repaints"),
	cmdline.NoCommand("info", "atm team, atm where, atm status NAME"),
	cmdline.NoCommand("state presence whois", "atm status NAME, atm team"),
	cmdline.NoCommand("set set-status report progress heartbeat", `atm event turn_started shows you as busy, turn_idle as idle; atm event status_update message="…" says what you are doing; no heartbeat is needed`),
	cmdline.NoCommand("config configure settings", "who you are: --as NAME, or export ATM_AGENT=NAME; the team: atm init --toml writes a team.toml to edit, atm doctor checks it; atm where shows what is in force"),
	cmdline.NoCommand("id identity who-am-i iam root", "atm where says who you are, and the root; --as NAME, or export ATM_AGENT=NAME"),
	cmdline.NoCommand("use login logout auth as su switch switch-client context contexts namespace", "put --as NAME on each command, or export ATM_AGENT=NAME; --team TEAM for another team"),
	cmdline.NoCommand("hooks", "atm install claude writes its hooks; also codex, gemini, opencode"),
	cmdline.NoCommand("plugin plugins extension extensions marketplace", "atm install claude --plugin; also codex, gemini"),
	cmdline.NoCommand("archive", "atm gc moves what was read long ago to the archive; atm backup FILE copies everything"),
	cmdline.NoCommand("export dump snapshot", "atm backup FILE copies everything; atm ls --all --json prints messages"),
	cmdline.NoCommand("import load", "atm restore FILE"),
	cmdline.NoCommand("clean cleanup prune purge clear", "atm read reads new mail; atm gc --dry-run shows what is old"),
	cmdline.NoCommand("validate lint verify fix repair", "atm doctor"),
	cmdline.NoCommand("serve server daemon service", "atm needs no server; a browser: atm web; other programs: atm mcp, atm acp, atm bridge"),
	cmdline.NoCommand("gui browser", "atm web"),
	cmdline.NoCommand("ui dashboard", "atm tui, or atm team --watch"),
	cmdline.NoCommand("remote remotes sync host hosts peers connect link pair", "the team on another machine: atm bridge --ssh HOST; an agent's terminal: atm attach NAME"),
	cmdline.NoCommand("tool tools", "each tool is a command here: atm help; an MCP client finds them in atm mcp --as NAME"),
	cmdline.NoCommand("upgrade", "go install github.com/agentteammail/atm/cmd/...@latest; what changed: CHANGELOG.md"),
	cmdline.NoCommand("keygen", "atm bridge keygen"),
	cmdline.NoCommand("commit diff merge rebase branch checkout clone stash blame reflog cherry-pick git pr issue repo gist workflow gh",
		`that is for git or gh; atm carries mail: atm send NAME "…", atm read`),
	cmdline.NoCommand("build image images rmi volume network system container port port-forward drain cordon docker kubectl tmux split-window", `that is for another tool; atm carries mail: atm send NAME "…", atm read`),
	cmdline.NoCommand("docs quickstart guide tutorial instructions explain example examples topics", "atm help, atm help VERB; agents run atm primer"),
}
