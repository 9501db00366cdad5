package quota

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"
)

const (
	// maxName is the maximum length of an object's name.
	maxName = 253
	// hashLength is the number of letters that distinguish changed names.
	hashLength = 5
	// hashLetters contains no vowels, so that a hash spells no words.
	hashLetters = "bcdfghjklmnpqrstvwxz"
)

// QueueName returns the name of the Queue object of the group with the path, if no other group uses that name: the
// path in lower case, with "-" for "/" and for characters that a name cannot contain. If anything but the "/" was
// changed or cut, a hash of the path follows. Kubernetes always accepts the name.
func QueueName(path string) string {
	dashed := strings.ReplaceAll(path, "/", "-")
	if name := objectName(dashed); name == dashed && len(name) <= maxName && name != "" {
		return name
	}
	return hashedName(path, 0)
}

// QueueNames returns the names of the Queue objects of groups with the paths. All names are different: if paths have
// the same QueueName, such as "a/b-c" and "a-b/c", the first keeps it and the others get a hash. So the order of
// paths matters.
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

// hashedName appends the hash of the path and the attempt to as much of the path as fits.
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

// objectName replaces and cuts the characters that the name of an object cannot contain. The result can be empty or
// too long. It has dots only between letters or digits.
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
