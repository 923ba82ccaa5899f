# atm: agent team mail. `make demo` shows it, `make test` proves it.

PREFIX   ?= $(HOME)/.local
DURATION ?= 60s
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

COMMIT   ?= $(shell git rev-parse HEAD 2>/dev/null)

GO       ?= go
LDFLAGS   = -s -w -X main.version=$(VERSION) -X github.com/agentteammail/atm/cmd/internal/cli/command.commit=$(COMMIT)
# All that compiles has the same flags, so that each package is compiled once, and not again in another clone. Without
# the tag the command line brings a Markdown parser, which costs each start a third of a millisecond.
export GOFLAGS := $(GOFLAGS) -trimpath -buildvcs=false -tags=urfave_cli_no_docs
export CGO_ENABLED = 0
BUILD     = $(GO) build -ldflags '$(LDFLAGS)'

# Packages that start goroutines are tested with the race detector, which needs a C compiler; without one they are tested
# without it. It makes all of a test four to ten times slower, so the others do without, and so do tests whose goroutines
# only start programs, which have tests of their own; race has it for all. The first ones run in goroutines of others.
RACE     := $(shell command -v $$($(GO) env CC) >/dev/null 2>&1 && echo -race)
RACED    := ptyrun/internal/run ptyrun/internal/viewers $(addprefix internal/maildir/,claim drop inbox keep once) \
	$(filter-out cmd/atm $(addprefix cmd/internal/,bench crashtest machines realagents), $(shell grep -rlE '^[[:space:]]*go [a-z]|\.Go[^a-zA-Z]' \
	--include='*.go' cmd internal mailbox ptyrun reducer session teams watcher wire | xargs -n1 dirname | sort -u))

# At its end a program with the race detector would sleep for a second.
export GORACE = atexit_sleep_ms=0

# Without the debugger's symbols sixty test programs are linked in two thirds of the time; check vets them.
TESTFLAGS = -ldflags=-w -vet=off -timeout 60m

STATICCHECK = $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2
ACTIONLINT  = $(GO) run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
GOVULNCHECK = $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.1.4

.PHONY: build install man dist release dist-check dist-test demo demo-team pictures test test-long quick race check gofmt vet fuzz stress machines windows faults powercut bench bench-runners real-agents day capabilities bench-push clean

build:
	@mkdir -p bin
	$(BUILD) -o bin/ ./cmd/...
	@echo "built $(CURDIR)/bin/atm"

install:
	@mkdir -p '$(PREFIX)/bin'
	GOBIN='$(abspath $(PREFIX))/bin' $(GO) install -ldflags '$(LDFLAGS)' ./cmd/...
	@mkdir -p '$(PREFIX)/share/man/man1'; '$(PREFIX)/bin/atm' help --man >'$(PREFIX)/share/man/man1/atm.1'
	@echo "installed $(PREFIX)/bin/atm"
	@case ":$$PATH:" in *":$(PREFIX)/bin:"*) ;; *) echo "put $(PREFIX)/bin on your PATH" ;; esac

# The manual page, where man finds it once bin is on PATH: man atm
man: build
	@mkdir -p bin/man/man1
	bin/atm help --man >bin/man/man1/atm.1

# All of a release, from .goreleaser.yaml, into dist: of the tag of this commit, else a snapshot. goreleaser must know where
# the forge is, also in a clone of a clone.
GORELEASER = GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=remote.origin.url GIT_CONFIG_VALUE_0=https://github.com/agentteammail/atm \
	$(GO) run github.com/goreleaser/goreleaser/v2@v2.15.1 release --clean
dist:
	$(GORELEASER) $(if $(shell git tag --points-at HEAD),--skip=publish,--snapshot)

# What CI does for a tag, with a GITHUB_TOKEN: dist, and all of it is published.
release:
	$(GORELEASER)

# The same commit gives the same bytes, in another directory as well.
dist-check: dist
	@dir=$$(mktemp -d); git clone -q . $$dir/atm && $(MAKE) -C $$dir/atm dist && diff dist/SHA256SUMS $$dir/atm/dist/SHA256SUMS \
		&& diff -r dist/homebrew $$dir/atm/dist/homebrew && diff -r dist/scoop $$dir/atm/dist/scoop && echo "dist-check: the same"; \
		code=$$?; rm -rf $$dir; exit $$code
	ATM_DIST='$(CURDIR)/dist' $(GO) test -count=1 -v -vet=off ./cmd/internal/packaging

# What is for this machine: each package is installed or unpacked in an empty directory, used, and removed.
dist-test:
	{ sed -e 's/^    goos:.*/    goos: [linux]/' -e 's/^    goarch:.*/    goarch: ['$$($(GO) env GOARCH)']/' \
		.goreleaser.yaml; echo 'dist: bin/here'; } | $(GORELEASER) --config - --snapshot --skip=sbom,scoop
	ATM_DIST='$(CURDIR)/bin/here' $(GO) test -count=1 -v -vet=off ./cmd/internal/packaging

demo: build
	@PATH="$(CURDIR)/bin:$$PATH" sh testdata/demo/demo.sh

# A team of fake agents under team.toml, a script that drives it, and a person.
demo-team: build
	@$(BUILD) -o bin/fakeagent ./internal/testagent/cmd/fakeagent
	@PATH="$(CURDIR)/bin:$$PATH" sh testdata/demo/team.sh

# What the documents show of that team: docs/*.png, and docs/film.cast.
pictures: build
	@for tool in aha asciinema chromium sha256sum tmux; do command -v $$tool >/dev/null || { echo "pictures: $$tool is missing:" \
		"apt-get install aha asciinema chromium coreutils fonts-dejavu-core tmux" >&2; exit 1; }; done
	@$(BUILD) -o bin/fakeagent ./internal/testagent/cmd/fakeagent
	@PATH="$(CURDIR)/bin:$$PATH" PICTURES='$(CURDIR)/testdata/demo/pictures.sh' sh testdata/demo/team.sh

# With the race detector and without it side by side, since tests wait more than they compute; what takes longest begins
# first.
test:
	@$(GO) test -p 2 $(TESTFLAGS) ./cmd/atm ./cmd/internal/crashtest $(filter-out $(RACED:%=github.com/agentteammail/atm/%),$(shell $(GO) list ./...)) & \
	$(if $(RACE),CGO_ENABLED=1) $(GO) test -p 4 $(RACE) $(TESTFLAGS) ./ptyrun ./internal/maildir $(RACED:%=./%); code=$$?; \
	wait $$! && exit $$code

# What test tries only some of: each file operation of a mailbox fails, and is killed at.
test-long:
	ATM_FAULTS=1 $(GO) test -count=1 $(TESTFLAGS) -run 'TestFaults|TestKilledAtEachStep' ./internal/maildir

# For a small change: the packages whose tests start no programs, without kills and floods. RUN=send adds that script.
HEAVY = cmd/atm% examples examples/% internal/testagent/% $(addprefix cmd/internal/,acpagent agentconfig bench bridge claudeteam cli/agent \
	crashtest machines mcp realagents room tui web windows) ptyrun ptyrun/internal/acp internal/process cmd/internal/runner/sessions
quick: gofmt
	$(GO) vet ./...
	@$(GO) test $(TESTFLAGS) -skip 'Kill|Fault|Full|Flood|Many|ByteByByte|ShellsAgree|nightly' \
		$(filter-out $(addprefix github.com/agentteammail/atm/,$(HEAVY)),$(shell $(GO) list ./...))
	@[ -z '$(RUN)' ] || $(GO) test $(TESTFLAGS) ./cmd/atm -run 'Scripts/^($(RUN))$$'

race:
	CGO_ENABLED=1 $(GO) test -race $(TESTFLAGS) ./...

check: vet gofmt
	$(STATICCHECK) ./...
	$(ACTIONLINT)
	$(GO) test -run TestCapabilities ./cmd/internal/realagents
	@out=$$($(GOVULNCHECK) ./... 2>&1); code=$$?; if [ $$code -eq 0 ]; then echo "govulncheck: clean"; \
	elif echo "$$out" | grep -qE 'fetching vulnerabilities|not available|403 Forbidden|dial tcp'; then echo "govulncheck: its data cannot be had here"; \
	else echo "$$out"; exit 1; fi

gofmt:
	@bad=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$bad" ]; then echo "not gofmt'd:"; echo "$$bad"; exit 1; fi

# Nothing here is made for one architecture, so each system is looked at on one. What is compiled for the others only to be
# looked at is not optimized: that takes two thirds of the time.
vet:
	$(GO) vet ./...
	GOOS=darwin GOARCH=arm64 $(GO) vet -gcflags='all=-N -l' ./...
	GOOS=windows GOARCH=amd64 $(GO) vet -gcflags='all=-N -l' ./...

# Every fuzz target for a while: make fuzz FUZZTIME=1m
FUZZTIME ?= 20s
fuzz:
	@set -e; for dir in $$(grep -rl '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u); do \
		for f in $$(grep -rh -o '^func Fuzz[A-Za-z0-9_]*' $$dir/*_test.go | sed 's/func //'); do \
			echo "$$dir $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$dir; done; done

stress:
	ATM_STRESS=$(DURATION) $(GO) test -p 1 -count=1 -v -run 'Stress|Kill|Machine|ByteByByte|Flood|TwentyPages' -timeout 60m \
		./internal/maildir ./session ./ptyrun ./internal/driver $(addprefix ./cmd/internal/,claudeteam crashtest web)

# Three hosts, three NATS servers, and everything breaks; then how fast it is: make machines DURATION=5m
machines:
	cd cmd/internal/machines && ATM_MACHINES=$(DURATION) $(GO) test -count=1 -v -timeout 60m

# The Windows program reads and writes mail. Needs wine.
windows:
	ATM_WINE=1 $(GO) test -count=1 -v -timeout 30m ./cmd/internal/windows

# What fails when the system fails: strace -e inject, full and read-only disks.
faults:
	ATM_FAULTS=1 $(GO) test -p 1 -count=1 -v -run 'Fault|KilledAtEachStep' -timeout 60m ./internal/maildir ./cmd/internal/crashtest

# Needs root: loop-mounted ext4 and xfs, shut down in the middle.
powercut:
	ATM_POWERCUT=1 $(GO) test -count=1 -v -run 'PowerCut' -timeout 60m ./cmd/internal/crashtest

# atm beside what this disk and machine can do: TMPDIR=DIR make bench BENCH=Delivery; or the processor time of its commands
# beside another build's: make bench BIN=/OTHER/bin
BENCH ?= .
ifeq ($(origin BIN),command line)
bench: build
	ATM_BENCH_COMMANDS='$(CURDIR)/bin:$(BIN)' $(GO) test -count=1 -v -vet=off -run TestCommands ./cmd/internal/bench
else
bench:
	$(GO) test -run '^$$' -bench '$(BENCH)' ./cmd/internal/bench
endif

# What runners cost, and how long they take, of this build and of others beside it, on the
# same machine at the same time: make bench-runners BIN=$PWD/bin:/OTHER/bin
BIN ?= $(CURDIR)/bin
bench-runners: build
	ATM_BENCH_BIN='$(BIN)' $(GO) test -count=1 -v -run TestRunners -timeout 30m ./cmd/internal/bench

# The real Claude Code, Codex, Gemini CLI, opencode, Qwen Code, Kilo, Continue, Cline, pi and
# GitHub Copilot CLI under atm run, with a fake model. npm installs them, about 1 GB, into the user's cache directory; the newest
# ones with NEWEST=1: make real-agents NEWEST=1 RUN=/claude. With RESULTS=1 each result takes the place of the one before it in testdata/results.json,
# of which capabilities makes docs/capabilities.md.
real-agents:
	ATM_REAL_AGENTS=1 ATM_REAL_NEWEST='$(NEWEST)' ATM_REAL_RESULTS='$(RESULTS)' $(GO) test -count=1 -v -timeout 60m -run '$(or $(RUN),.)' ./cmd/internal/realagents

# A working day with the real Claude Code and opencode, in short: make day DURATION=2h. The same day again: SEED=1
day: DURATION = 10m
day:
	ATM_REAL_AGENTS=1 ATM_WORKDAY='$(DURATION)' ATM_WORKDAY_SEED='$(SEED)' $(GO) test -count=1 -v -timeout 0 -run TestWorkingDay ./cmd/internal/realagents

capabilities:
	$(GO) test -count=1 -run TestCapabilities ./cmd/internal/realagents -update

# How long mail takes into programs that a person started, and what runs meanwhile: make bench-push IDLE=30 RUN=/claude
bench-push:
	ATM_REAL_AGENTS=1 ATM_REAL_MEASURE=1 IDLE='$(IDLE)' $(GO) test -count=1 -v -timeout 60m -run 'TestMeasurePush$(RUN)' ./cmd/internal/realagents

clean:
	rm -rf bin dist
