package quota

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"
)

const (
	// maxName is the longest name that an object may have.
	maxName = 253
	// hashLength is the number of letters that tell changed names apart.
	hashLength = 5
	// hashLetters spell no words.
	hashLetters = "bcdfghjklmnpqrstvwxz"
)

// QueueName is the name that the Queue object of the group with the path has
// when no other group has taken it: the path in lower case with "-" for "/" and
// for what a name may not hold, and a hash of the path where anything but the
// "/" was changed or cut. It always is a name that Kubernetes accepts.
func QueueName(path string) string {
	dashed := strings.ReplaceAll(path, "/", "-")
	if name := objectName(dashed); name == dashed && len(name) <= maxName && name != "" {
		return name
	}
	return hashedName(path, 0)
}

// QueueNames are the names of the Queue objects of groups with the paths, no two
// of which are equal. Of paths that come to one name, as "a/b-c" and "a-b/c", the
// first keeps it and the others get a hash: the order of paths matters.
func QueueNames(paths []string) []string {
	names := make([]string, len(paths))
	taken := make(map[string]bool, len(paths))
	for i, path := range paths {
		name := QueueName(path)
		for attempt := 0; taken[name]; attempt++ {
			name = hashedName(path, attempt)
		}
		taken[name] = true
		names[i] = name
	}
	return names
}

// hashedName adds the hash of the path and the attempt to as much of the path as
// there is room for.
func hashedName(path string, attempt int) string {
	name := objectName(strings.ReplaceAll(path, "/", "-"))
	if most := maxName - 1 - hashLength; len(name) > most {
		name = strings.TrimRight(name[:most], "-.")
	}
	if name == "" {
		return "queue-" + hash(path, attempt)
	}
	return name + "-" + hash(path, attempt)
}

// objectName replaces and cuts what the name of an object may not hold; what is
// left may be empty or too long. Dots stand only between letters or digits.
func objectName(s string) string {
	lower := strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		case alphanumeric(r), r == '-', r == '.':
			return r
		default:
			return '-'
		}
	}, s)
	name := []byte(strings.Trim(lower, "-."))
	for i, c := range name {
		if c == '.' && !(alphanumeric(rune(name[i-1])) && alphanumeric(rune(name[i+1]))) {
			name[i] = '-'
		}
	}
	return string(name)
}

func alphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= '0' && r <= '9'
}

func hash(path string, attempt int) string {
	if attempt > 0 {
		path += "/" + strconv.Itoa(attempt)
	}
	sum := sha256.Sum256([]byte(path))
	number := binary.BigEndian.Uint64(sum[:])
	letters := make([]byte, hashLength)
	for i := range letters {
		letters[i] = hashLetters[number%uint64(len(hashLetters))]
		number /= uint64(len(hashLetters))
	}
	return string(letters)
}
