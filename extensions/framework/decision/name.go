package decision

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// maxName is the longest name that an object may have.
	maxName = 253
	// nameHash is the number of letters that tell jobs of one name and kind apart.
	nameHash = 10
)

// UnitName is the name of a job's unit: readable, and never that of another
// job's, be it of another kind or one deleted before.
func UnitName(kind, job string, uid types.UID) string {
	sum := sha256.Sum256([]byte(uid))
	tail := "-" + strings.ToLower(kind) + "-" + hex.EncodeToString(sum[:])[:nameHash]
	if most := maxName - len(tail); len(job) > most {
		job = job[:most]
	}
	return strings.TrimRight(job, "-.") + tail
}
