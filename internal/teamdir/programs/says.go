package programs

// TakesContextAtStop reports whether the program goes on with what its hook adds to the context where it would stop.
func (p Program) TakesContextAtStop() bool {
	s, err := p.Says()
	return err == nil && s.TakesContextAtStop
}
