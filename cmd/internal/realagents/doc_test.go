// Package realagents runs the agent programs that people use, Claude Code,
// Codex, Gemini CLI, opencode, Qwen Code, Kilo, Continue, Cline, pi and GitHub
// Copilot CLI, under atm run and started by hand (newByHand). It has tests only.
//
// The programs are the real ones, as npm installs them, each with a HOME of its
// own; the model that they talk to is a small fake one on the loopback device,
// whose log is the proof of what an agent was really told. The scripts in kit set
// both up. The tests are skipped unless ATM_REAL_AGENTS is set:
//
//	make real-agents [NEWEST=1] [RUN=/claude]
//
// Each version of a program is installed once, about 1 GB for all, under
// ATM_REAL_NPM, or else in the user's cache directory. With ATM_REAL_NEWEST set the
// newest versions are run. The last line says which were. With ATM_REAL_KEEP set,
// what a test that failed has made stays: screens, recordings, the model's log.
//
// Two of the cookbook's scripts are run with different programs at the places of
// their agents.
//
// TestWorkingDay has a team of them at work while everything is killed, restarted and replaced by a new version of atm:
//
//	make day [DURATION=2h] [SEED=1]
//
// A client of the Model Context Protocol, the TypeScript SDK's, is installed beside them, and talks to atm mcp.
//
// What the fake agent of package testagent pretends is what was seen here; a
// new version of one of the programs is tried here first.
package realagents
