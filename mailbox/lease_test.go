package mailbox

func received(*Item, Lease) (bool, error) { return true, nil }
