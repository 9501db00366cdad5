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

// UnitName returns the name of a job's unit. It is readable and unique: units of other kinds, and of deleted jobs of
// the same name, have other names.
func UnitName(kind, job string, uid types.UID) string {
	sum := sha256.Sum256([]byte(uid))
	tail := "-" + strings.ToLower(kind) + "-" + hex.EncodeToString(sum[:])[:nameHash]
	if most := maxName - len(tail); len(job) > most {
		job = job[:most]
	}
	return strings.TrimRight(job, "-.") + tail
}

// JobOf is the inverse of UnitName: it returns the name of the job whose unit has the name. It returns false if units
// of the kind have no such names, or if UnitName may have shortened the job's name.
func JobOf(kind, unit string) (job string, known bool) {
	most := len(unit) - nameHash - 1
	if kind == "" || most < 0 || len(unit) == maxName || strings.Trim(unit[most+1:], "0123456789abcdef") != "" {
		return "", false
	}
	job, known = strings.CutSuffix(unit[:most], "-"+strings.ToLower(kind))
	return job, known && job != "" && unit[most] == '-'
}
