package outlet

import (
	"context"
	"os"
	"time"
)

// deliver writes the pieces and returns how many of their bytes were taken.
func deliver(ctx context.Context, f *os.File, _ time.Time, pieces []Piece) (taken int, err error) {
	for _, p := range pieces {
		if err := ctx.Err(); err != nil {
			return taken, err
		}
		n, err := f.Write(p.Text)
		taken += n
		if err != nil {
			return taken, err
		}
	}
	return taken, nil
}
