package kueue

import (
	"strconv"
	"strings"
)

// maxLabel is the maximum length of a label value. Jobs select a quota node by its name in a label.
const maxLabel = 63

// nodeNames gives each quota node a name that is unique in the tree.
type nodeNames map[string]bool

// name returns the first free name, or the last one with a number.
func (taken nodeNames) name(wanted ...string) string {
	last := ""
	for _, name := range wanted {
		if last = shortened(name, maxLabel); !taken[last] {
			taken[last] = true
			return last
		}
	}
	for number := 2; ; number++ {
		suffix := "-" + strconv.Itoa(number)
		if name := shortened(last, maxLabel-len(suffix)) + suffix; !taken[name] {
			taken[name] = true
			return name
		}
	}
}

// shortened cuts a name to at most the given length, so that it is a valid label value.
func shortened(name string, most int) string {
	if len(name) <= most {
		return name
	}
	return strings.TrimRight(name[:most], "-.")
}
