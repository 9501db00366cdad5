package decision

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// maxName is the maximum length of an object's name.
	maxName = 253
	// nameHash is the length of the hash that distinguishes jobs of the same name and kind.
	nameHash = 10
)

// UnitName returns the name of a job's unit. It is readable and unique: the units of a job of another kind, and of a
// deleted job of the same name, have other names.
func UnitName(kind, job string, uid types.UID) string {
	sum := sha256.Sum256([]byte(uid))
	tail := "-" + strings.ToLower(kind) + "-" + hex.EncodeToString(sum[:])[:nameHash]
	if most := maxName - len(tail); len(job) > most {
		job = job[:most]
	}
	return strings.TrimRight(job, "-.") + tail
}
