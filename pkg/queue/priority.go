package queue

// Priority lets items pass one that was refused, as long as it does not fit.
var Priority = &Policy{Name: "Priority", Before: priorityFirst}

// priorityFirst orders items by priority, then by submission time, then by name.
func priorityFirst(a, b *Item) bool {
	if a.Priority != b.Priority {
		return a.Priority > b.Priority
	}
	return a.Older(b)
}
