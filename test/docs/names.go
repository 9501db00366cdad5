package docs

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
)

// Names maps the random parts of names on a page, such as "s2vjb" of "train-s2vjb", to those of
// the cluster.
type Names struct {
	cluster, page map[string]string
}

// random matches the suffix of a generated name, and the hash in the name of a QueueUnit or a ControllerRevision.
var random = regexp.MustCompile(`-([0-9a-f]{32}|[0-9a-f]{10}|[bcdfghjklmnpqrstvwxz2456789]{5})\b`)

// InCluster replaces what the page shows with what the cluster has.
func (n *Names) InCluster(text string) string {
	return random.ReplaceAllStringFunc(text, func(part string) string {
		if actual, known := n.cluster[part[1:]]; known {
			return "-" + actual
		}
		return part
	})
}

func (n *Names) clone() *Names {
	return &Names{cluster: maps.Clone(n.cluster), page: maps.Clone(n.page)}
}

// onPage replaces known random parts with those on the page, and others with their length.
func (n *Names) onPage(text string) string { return replaceKnown(text, n.page, true) }

func (n *Names) ofPage(text string) string { return replaceKnown(text, n.cluster, false) }

func replaceKnown(text string, known map[string]string, replace bool) string {
	return random.ReplaceAllStringFunc(text, func(part string) string {
		other, isKnown := known[part[1:]]
		switch {
		case !isKnown:
			return "-<" + strconv.Itoa(len(part)-1) + ">"
		case replace:
			return "-" + other
		}
		return part
	})
}

// learn maps the random parts of a text on the page to those of the same text in the cluster.
func (n *Names) learn(shown, actual string) error {
	one, other := random.FindAllStringSubmatch(shown, -1), random.FindAllStringSubmatch(actual, -1)
	if len(one) != len(other) {
		return errors.New("other names")
	}
	for i := range one {
		here, there := one[i][1], other[i][1]
		if known, is := n.cluster[here]; is && known != there {
			return fmt.Errorf("%q and %q: the page has one name where the cluster has two, %s and %s", strings.TrimSpace(shown), strings.TrimSpace(actual), known, there)
		}
		if known, is := n.page[there]; is && known != here {
			return fmt.Errorf("%q and %q: the cluster has one name where the page has two, %s and %s", strings.TrimSpace(shown), strings.TrimSpace(actual), known, here)
		}
		n.bind(here, there)
	}
	return nil
}

func (n *Names) bind(shown, actual string) {
	if n.cluster == nil {
		n.cluster, n.page = map[string]string{}, map[string]string{}
	}
	n.cluster[shown], n.page[actual] = actual, shown
}
