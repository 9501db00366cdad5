package rights

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"kube-queue.dev/kube-queue/test/audit/log"
)

// Use is what the programs did in one cluster.
type Use struct {
	Rights []Right
	// Forbidden reports what they tried without the right to.
	Forbidden []string `json:",omitempty"`
}

// account is the user that the API server knows a program of kube-queue as.
const account = "system:serviceaccount:kube-queue:"

// decision is an annotation of an audit entry: whether its user had the right.
const decision = "authorization.k8s.io/decision"

// Read reads an audit log. A last line without an end is left out.
func Read(r io.Reader) (Use, error) {
	u := &reader{seen: map[Right]bool{}, withdrawn: map[string]bool{}}
	_, err := log.Lines(r, func(number int, line []byte) error {
		// Nearly all lines are somebody else's.
		if !bytes.Contains(line, []byte(account)) && !bytes.Contains(line, []byte(rbacv1.GroupName)) {
			return nil
		}
		e, err := log.Parse(line)
		if err != nil {
			return log.NoEntry(number, err)
		}
		u.take(number, e)
		return nil
	})
	if err != nil {
		return Use{}, err
	}
	return Use{Rights: slices.SortedFunc(maps.Keys(u.seen), compare), Forbidden: u.forbidden}, nil
}

// reader collects the used rights from the entries of a log.
type reader struct {
	seen      map[Right]bool
	forbidden []string
	// withdrawn are the names of our roles and bindings that are deleted at the moment.
	withdrawn map[string]bool
}

func (u *reader) take(number int, e *log.Entry) {
	u.withdraw(e)
	program, is := programOf(e)
	if !is {
		return
	}
	if e.Annotations[decision] == "forbid" {
		// An uninstall takes the rights before the pods have ended.
		if len(u.withdrawn) == 0 {
			u.forbidden = append(u.forbidden, fmt.Sprintf("%s: %s %s (line %d)", program, e.Verb, e.RequestURI, number))
		}
		return
	}
	if e.ObjectRef == nil {
		return
	}
	right := rightOf(e, program)
	u.seen[right] = true
	// An API server that cannot send a list as the beginning of a watch is sent the
	// list itself.
	if e.Verb == "watch" && strings.Contains(e.RequestURI, "sendInitialEvents=true") {
		right.Verb = "list"
		u.seen[right] = true
	}
}

// ours reports whether a role or binding of that name is one of the programs'.
func ours(name string) bool {
	return slices.ContainsFunc(Programs, func(program string) bool { return name == program || name == "kube-queue-"+program })
}

// withdraw follows the roles and bindings that are deleted and created.
func (u *reader) withdraw(e *log.Entry) {
	if e.ObjectRef == nil || e.ObjectRef.APIGroup != rbacv1.GroupName || !e.Complete() || !ours(e.ObjectRef.Name) {
		return
	}
	object := e.ObjectRef.Resource + "/" + e.ObjectRef.Name
	switch e.Verb {
	case "delete":
		u.withdrawn[object] = true
	case "create", "patch":
		delete(u.withdrawn, object)
	}
}

// programOf is the program that made the request, if one of ours did.
func programOf(e *log.Entry) (string, bool) {
	agent := e.Agent()
	if e.User.Username != account+agent || !slices.Contains(Programs, agent) {
		return "", false
	}
	return agent, true
}

func rightOf(e *log.Entry, program string) Right {
	r := Right{Program: program, Verb: e.Verb, Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource,
		Namespace: e.ObjectRef.Namespace}
	if e.ObjectRef.Subresource != "" {
		r.Resource += "/" + e.ObjectRef.Subresource
	}
	// Only kube-queue's own namespace has rights of its own, and only leases have rights by
	// name: with more, the list would be one of all objects.
	if r.Namespace != "kube-queue" {
		r.Namespace = ""
	}
	if r.Resource == "leases" {
		r.Name = e.ObjectRef.Name
	}
	return r
}

// Collect reads the audit log of a cluster, keeps what was used in a file of its own in
// the folder, if one is named, and fails when a program was refused.
func Collect(auditLog, folder string) error {
	file, err := os.Open(auditLog)
	if err != nil {
		return err
	}
	defer file.Close()
	use, err := Read(file)
	if err != nil {
		return fmt.Errorf("%s: %w", auditLog, err)
	}
	if len(use.Forbidden) > 0 {
		return fmt.Errorf("programs were refused what they have no right to:\n%s", strings.Join(use.Forbidden, "\n"))
	}
	if folder == "" {
		return nil
	}
	text, err := json.Marshal(use)
	if err != nil {
		return err
	}
	list, err := os.CreateTemp(folder, "used-*.json")
	if err != nil {
		return err
	}
	_, err = list.Write(text)
	return errors.Join(err, list.Close())
}

// Collected is what all lists of a folder say, and how many there are.
func Collected(folder string) (used []Right, lists int, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, 0, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, 0, err
		}
		var use Use
		if err := json.Unmarshal(text, &use); err != nil {
			return nil, 0, fmt.Errorf("%s: %w", file, err)
		}
		used = append(used, use.Rights...)
	}
	slices.SortFunc(used, compare)
	return slices.Compact(used), len(files), nil
}
