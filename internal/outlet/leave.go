package outlet

import (
	"context"
	"errors"
	"os"
)

// ErrReaderGone is the cause (context.Cause) of a WhileRead context that ended
// because nobody reads any more.
var ErrReaderGone = errors.New("nobody reads the output any more")

// WhileRead is a context for what writes rarely, which a failing write would
// tell too late: it ends when the reader of a pipe or socket has gone, where
// the system tells it. It costs a thread that sleeps in the kernel, which stop
// ends and waits for. Of anything else the context ends only with ctx.
func WhileRead(ctx context.Context, f *os.File) (_ context.Context, stop func()) {
	if f == nil {
		f = os.Stdout
	}
	ctx, cancel := context.WithCancelCause(ctx)
	wait := leaving(f, func() { cancel(ErrReaderGone) })
	return ctx, func() {
		cancel(context.Canceled)
		wait()
	}
}
