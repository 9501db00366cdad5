package provisioning

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
)

const (
	// maxName is the maximum length of an object's name.
	maxName = 253
	// nameHash is the length of a hash in a name.
	nameHash = 10
)

// RequestName returns the name of the request of a unit for a check in its current attempt.
func RequestName(unit *v1alpha1.QueueUnit, check string) string {
	attempt := strconv.Itoa(int(unit.Status.Reservations))
	name := unit.Name + "-" + check + "-" + attempt
	if len(name) <= maxName {
		return name
	}
	return shorten(unit.Name+"-"+check, "-"+hash(unit.Name, check, attempt)+"-"+attempt)
}

// templateName returns the name of a template with the content.
func templateName(request, content string) string {
	return shorten(request, "-"+hash(request, content))
}

// shorten cuts the head of a name so that head and tail fit into a name.
func shorten(head, tail string) string {
	if most := maxName - len(tail); len(head) > most {
		head = strings.TrimRight(head[:most], "-.")
	}
	return head + tail
}

// hash returns a text that identifies the parts.
func hash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])[:nameHash]
}
