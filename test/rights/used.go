package rights

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"kube-queue.dev/kube-queue/test/audit/log"
)

// Use has the rights used in one cluster.
type Use struct {
	Rights []Right
	// Forbidden lists refused requests.
	Forbidden []string `json:",omitempty"`
}

// account is the prefix of the programs' user names.
const account = "system:serviceaccount:kube-queue:"

// decision is the annotation of an audit entry with the result of the authorization.
const decision = "authorization.k8s.io/decision"

// Read reads an audit log. An incomplete last line is ignored.
func Read(r io.Reader) (Use, error) {
	u := &reader{seen: map[Right]bool{}, withdrawn: map[string]bool{}}
	_, err := log.Lines(r, func(number int, line []byte) error {
		// Skip the lines of other users, which are nearly all.
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
	// withdrawn has the names of kube-queue's roles and bindings that are currently deleted.
	withdrawn map[string]bool
}

func (u *reader) take(number int, e *log.Entry) {
	u.withdraw(e)
	program, is := programOf(e)
	if !is {
		return
	}
	if e.Annotations[decision] == "forbid" {
		// An uninstall removes the rights before the pods have ended.
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
	// The client falls back to a list if the API server does not support sendInitialEvents.
	if e.Verb == "watch" && strings.Contains(e.RequestURI, "sendInitialEvents=true") {
		right.Verb = "list"
		u.seen[right] = true
	}
	// An apply that creates the object is authorized as a creation too.
	if e.Verb == "patch" && e.ResponseStatus != nil && e.ResponseStatus.Code == http.StatusCreated {
		right.Verb = "create"
		u.seen[right] = true
	}
}

// ours reports whether a role or binding with this name belongs to the programs.
func ours(name string) bool {
	return slices.ContainsFunc(Programs, func(program string) bool { return name == program || name == "kube-queue-"+program })
}

// withdraw records deleted and created roles and bindings.
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

// programOf returns the program that sent the request, if any.
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
	// Record the namespace only if it is kube-queue's, and the name only for the programs' own objects. Otherwise the
	// list would contain all objects.
	if r.Namespace != "kube-queue" {
		r.Namespace = ""
	}
	if slices.Contains([]string{"leases", "secrets", "endpointslices", "mutatingwebhookconfigurations", "validatingwebhookconfigurations"}, r.Resource) {
		r.Name = e.ObjectRef.Name
	}
	return r
}

// Collect reads the audit log of a cluster and writes the used rights to a new file in the folder, if it is not
// empty. It returns an error if a program was refused anything except the resources that a test denies, such as
// "/pytorchjobs".
func Collect(auditLog, folder string, taken ...string) error {
	file, err := os.Open(auditLog)
	if err != nil {
		return err
	}
	defer file.Close()
	use, err := Read(file)
	if err != nil {
		return fmt.Errorf("%s: %w", auditLog, err)
	}
	use.Forbidden = slices.DeleteFunc(use.Forbidden, func(refused string) bool {
		return slices.ContainsFunc(taken, func(resource string) bool { return strings.Contains(refused, resource) })
	})
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

// Collected returns the rights in all lists of a folder, and the number of lists.
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
