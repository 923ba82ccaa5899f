package mailbox

import "sync"

// failing fails the k-th file operation, or all from the k-th on, while it is armed.
type failing struct {
	mu     sync.Mutex
	armed  bool
	k      int // 0: none fails
	onward bool
	err    error

	n      int             // operations so far
	syncs  int             // fsyncs of files so far
	failed []string        // operations that failed, with names
	dead   map[string]bool // names whose fsync failed
	again  []string        // fsyncs of those, repeated
}

func (f *failing) fault(op, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.armed {
		return nil
	}
	f.n++
	f.syncs += count(op == "fsync")
	isSync := op == "fsync" || op == "fsync directory"
	if isSync && f.dead[name] {
		f.again = append(f.again, name)
	}
	if f.k == 0 || f.n < f.k || f.n > f.k && !f.onward {
		return nil
	}
	f.failed = append(f.failed, op+" "+name)
	if isSync {
		if f.dead == nil {
			f.dead = map[string]bool{}
		}
		f.dead[name] = true
	}
	return f.err
}
