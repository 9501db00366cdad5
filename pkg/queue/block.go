package queue

// Block tries only the front item.
var Block = &Policy{Name: "Block", Before: (*Item).Older, FrontOnly: true}
