package wire

import "bufio"

// ReadLine reads a line with its line feed, and returns its length. It holds no more than max bytes: a longer line is
// read to its end, and is nil. At the end of the text it returns io.EOF with the rest.
func ReadLine(r *bufio.Reader, max int64) (line []byte, n int64, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if n += int64(len(part)); n <= max {
			line = append(line, part...)
		} else {
			line = nil
		}
		if err != bufio.ErrBufferFull {
			return line, n, err
		}
	}
}
