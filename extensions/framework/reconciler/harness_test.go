package reconciler

// unreported takes no notice of lists and watches.
func unreported(error) {}
