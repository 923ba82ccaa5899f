package screen

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// A Report is what a program says outright that it does, with the status sequence OSC 7501. It is untrusted: only its
// texts, Title and Message, may have any characters, but never control characters.
type Report = ansi.ProgramStatus

// A Status is the newest reports of a program: one record for each id, ordered by id, "" first. It is a value.
type Status []Report

// The limits of the protocol. What goes beyond them is dropped.
const (
	maxReport  = 4 << 10 // bytes of a whole sequence
	maxRecords = 256
	maxID      = 128 // bytes
	maxLevels  = 8   // of an id
	maxTitle   = 192 // bytes, decoded
	maxMessage = 2 << 10
)

// isPassing reports whether a state says that the program works or waits, which it no longer does at a shell's prompt.
func isPassing(s ansi.ProgramState) bool {
	return s == ansi.ProgramStateWorking || s == ansi.ProgramStateBlocked
}

// AtPrompt returns the records that outlive the program: that something is done, or has failed.
func (s Status) AtPrompt() Status {
	return slices.DeleteFunc(slices.Clone(s), func(r Report) bool { return isPassing(r.State) })
}

// Program returns what the program of that name says that it does itself: its root record, or without one the first
// that works, else the first. A record below that waits for a person makes the program wait. False: it says nothing.
func (s Status) Program(app string) (says Report, ok bool) {
	for _, r := range s {
		switch {
		case r.App != app || app == "":
		case !ok, says.ID != "" && !isPassing(says.State) && r.State == ansi.ProgramStateWorking,
			r.State == ansi.ProgramStateBlocked && says.State != ansi.ProgramStateBlocked:
			says, ok = r, true
		}
	}
	return says, ok
}

// with returns the records after a report. False: there is no room for it.
func (s Status) with(r Report) (Status, bool) {
	at, isKnown := slices.BinarySearchFunc(s, r.ID, func(r Report, id string) int { return strings.Compare(r.ID, id) })
	switch {
	case r.State == ansi.ProgramStateClear:
		return slices.DeleteFunc(slices.Clone(s), func(old Report) bool {
			return r.ID == "" || old.ID == r.ID || strings.HasPrefix(old.ID, r.ID+"/")
		}), true
	case isKnown:
		s = slices.Clone(s)
		s[at] = r
		return s, true
	case len(s) >= maxRecords:
		return s, false
	}
	return slices.Insert(slices.Clone(s), at, r), true
}

// ParseReport reads what follows "7501;" in a status sequence. A report with an invalid part is none; keys and kinds
// that are not known are left out.
func ParseReport(text string) (r Report, ok bool) {
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(text, ":") {
		key, value, hasValue := strings.Cut(pair, "=")
		if !hasValue || seen[key] {
			return Report{}, false
		}
		seen[key], ok = true, true
		switch key {
		case "state":
			r.State = ansi.ProgramState(value)
		case "id":
			r.ID, ok = value, isID(value)
		case "app":
			r.App, ok = value, isName(value)
		case "kind":
			r.Kind = ansi.ProgramStatusKind(value)
		case "progress":
			r.Progress, r.HasProgress, ok = progressOf(value)
		case "title":
			r.Title, ok = textOf(value, maxTitle)
		case "msg":
			r.Message, ok = textOf(value, maxMessage)
		}
		if !ok {
			return Report{}, false
		}
	}
	switch r.State {
	case ansi.ProgramStateIdle, ansi.ProgramStateDone, ansi.ProgramStateError, ansi.ProgramStateClear:
		r.Progress, r.HasProgress = 0, false
	case ansi.ProgramStateWorking, ansi.ProgramStateBlocked:
	default:
		return Report{}, false
	}
	switch r.Kind {
	case ansi.ProgramStatusKindPermission, ansi.ProgramStatusKindQuestion, ansi.ProgramStatusKindAuth:
		if r.State == ansi.ProgramStateBlocked {
			return r, true
		}
	}
	r.Kind = ""
	return r, true
}

func progressOf(s string) (percent int, ok, isValid bool) {
	n, err := strconv.ParseUint(s, 10, 8)
	isValid = err == nil && n <= 100
	return int(n), isValid, isValid
}

func isID(s string) bool {
	levels := strings.Split(s, "/")
	return len(s) <= maxID && len(levels) <= maxLevels && !slices.ContainsFunc(levels, func(s string) bool { return !isName(s) })
}

// isName reports whether s may be the name of a program, or a level of an id.
func isName(s string) bool {
	return s != "" && len(s) <= 32 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-") == ""
}

func textOf(encoded string, limit int) (string, bool) {
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(text) > limit || !utf8.Valid(text) {
		return "", false
	}
	return strings.Map(withoutControl, string(text)), true
}

func withoutControl(r rune) rune {
	if unicode.IsControl(r) {
		return -1
	}
	return r
}

// statusPrefix begins a status sequence.
const statusPrefix = "\x1b]" + statusOSC + ";"
