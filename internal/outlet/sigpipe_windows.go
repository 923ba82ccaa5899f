package outlet

// IgnoreSIGPIPE does nothing: there is no such signal here.
func IgnoreSIGPIPE() {}
