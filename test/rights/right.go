package rights

import (
	"cmp"
	"fmt"
	"strings"
)

// Programs are the checked programs. Each is also the name of the ServiceAccount and the prefix of
// the user agent.
var Programs = []string{"kube-queue-controller", "job-extensions"}

// Folder is the environment variable with the folder for the lists.
const Folder = "KUBE_QUEUE_RIGHTS"

// Right is one verb on one resource.
type Right struct {
	Program  string
	Verb     string
	Group    string
	Resource string // with its subresource, such as jobs/status
	// Namespace is that of a right granted by a Role. Empty means all.
	Namespace string
	// Name is the name of the only object, if the right is limited to one.
	Name string
}

func (r Right) String() string {
	text := fmt.Sprintf("%s: %s %s", r.Program, r.Verb, r.Resource)
	if r.Group != "" {
		text += "." + r.Group
	}
	if r.Name != "" {
		text += " " + r.Name
	}
	if r.Namespace != "" {
		text += " in " + r.Namespace
	}
	return text
}

// covers reports whether the right includes a used right.
func (r Right) covers(done Right) bool {
	return r.Program == done.Program && r.Verb == done.Verb && r.Group == done.Group && r.Resource == done.Resource &&
		(r.Namespace == "" || r.Namespace == done.Namespace) && (r.Name == "" || r.Name == done.Name)
}

func compare(a, b Right) int {
	return cmp.Or(cmp.Compare(a.Program, b.Program), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource),
		cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Difference is the difference between granted and used rights.
type Difference struct {
	// Unused rights are granted and were not used.
	Unused []Right
	// Uncovered rights were used and are not granted.
	Uncovered []Right
}

// Compare returns the difference.
func Compare(granted, used []Right) Difference {
	var d Difference
	served := make([]bool, len(granted))
	for _, u := range used {
		covered := false
		for i, g := range granted {
			if g.covers(u) {
				covered, served[i] = true, true
			}
		}
		if !covered {
			d.Uncovered = append(d.Uncovered, u)
		}
	}
	for i, g := range granted {
		if !served[i] {
			d.Unused = append(d.Unused, g)
		}
	}
	return d
}

func (d Difference) String() string {
	var text strings.Builder
	for _, r := range d.Unused {
		fmt.Fprintf(&text, "granted and never used: %v\n", r)
	}
	for _, r := range d.Uncovered {
		fmt.Fprintf(&text, "used and not granted: %v\n", r)
	}
	return text.String()
}
