package metrics

import (
	"strings"

	"kube-queue.dev/kube-queue/pkg/generated/kinds"
)

// other is the framework of units that somebody made by hand.
const other = "other"

// Framework is the label of a kind: the kind itself where it is one that can be queued,
// for a unit made by hand may name any.
func Framework(kind string) string {
	for _, known := range kinds.All() {
		if strings.EqualFold(kind, known) {
			return known
		}
	}
	return other
}

// FrameworkOf is the framework of the unit by its name, which ends with the kind of the
// job and a hash. That spares to keep the kind of each unit that waits.
func FrameworkOf(unit string) string {
	head, _, hashed := cutLast(unit)
	_, kind, named := cutLast(head)
	if !hashed || !named {
		return other
	}
	return Framework(kind)
}

func cutLast(name string) (before, after string, found bool) {
	at := strings.LastIndexByte(name, '-')
	if at < 0 {
		return name, "", false
	}
	return name[:at], name[at+1:], true
}
