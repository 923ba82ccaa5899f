package maildir

// KeepHeadersOf lets tests keep the headers of small folders, too.
func KeepHeadersOf(names, rows int) (restore func()) {
	oldNames, oldRows := worthNames, worthRows
	worthNames, worthRows = names, rows
	return func() { worthNames, worthRows = oldNames, oldRows }
}
