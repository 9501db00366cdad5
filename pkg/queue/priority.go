package queue

// Priority lets items pass one that was refused, as long as it does not fit.
var Priority = &Policy{Name: "Priority", Before: (*Item).Older}
