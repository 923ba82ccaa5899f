package agent

import "testing"

func TestUnescape(t *testing.T) {
	for in, want := range map[string]string{
		"plain ü": "plain ü", `\r\n\t\b\e\\`: "\r\n\t\b\x1b\\", `\033[A`: "\x1b[A", `say "hi"`: `say "hi"`, `\x1b[A`: "\x1b[A", `\xff\u2733`: "\xff✳",
	} {
		if got, err := unescape(in); err != nil || got != want {
			t.Errorf("%s: %q %v", in, got, err)
		}
	}
	for _, in := range []string{"", `\`, `\q`, `\x`, `\x1`, `\xzz`, `\u12`, `\ü`} {
		if got, err := unescape(in); err == nil {
			t.Errorf("%s: %q", in, got)
		}
	}
}
