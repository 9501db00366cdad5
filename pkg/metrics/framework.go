package metrics

import (
	"strings"

	"kube-queue.dev/kube-queue/pkg/generated/kinds"
)

// other is the framework of hand-made units.
const other = "other"

// Framework returns the label value of a kind: the kind itself if kube-queue supports it. A hand-made unit can name
// any kind, which becomes other.
func Framework(kind string) string {
	for _, known := range kinds.All() {
		if strings.EqualFold(kind, known) {
			return known
		}
	}
	return other
}

// FrameworkOf returns the framework of a unit by its name, which ends with the kind of the
// job and a hash. This avoids storing the kind of every waiting unit.
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
