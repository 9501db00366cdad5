package rights

import (
	"bufio"
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
)

// Use is what the programs did in one cluster.
type Use struct {
	Rights []Right
	// Forbidden tells what they tried without the right to.
	Forbidden []string `json:",omitempty"`
}

// entry is the part of an audit.k8s.io/v1 Event that is read.
type entry struct {
	Stage     string `json:"stage"`
	Verb      string `json:"verb"`
	UserAgent string `json:"userAgent"`
	URI       string `json:"requestURI"`
	User      struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef *struct {
		Resource    string `json:"resource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		APIGroup    string `json:"apiGroup"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	Annotations map[string]string `json:"annotations"`
}

// account is the user that the API server knows a program of kube-queue as.
const account = "system:serviceaccount:kube-queue:"

// decision is an annotation of an audit entry: whether its user had the right.
const decision = "authorization.k8s.io/decision"

// Read reads an audit log. A last line without an end is left out.
func Read(r io.Reader) (Use, error) {
	seen := map[Right]bool{}
	withdrawn := map[string]bool{}
	var use Use
	lines := bufio.NewReaderSize(r, 1<<20)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Use{}, err
		}
		var e entry
		// Nearly all lines are somebody else's.
		if !bytes.Contains(line, []byte(account)) && !bytes.Contains(line, []byte(rbacv1.GroupName)) {
			continue
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return Use{}, fmt.Errorf("line %d is no audit entry: %w", number, err)
		}
		e.withdraw(withdrawn)
		program, is := e.program()
		if !is {
			continue
		}
		if e.Annotations[decision] == "forbid" {
			if len(withdrawn) > 0 {
				continue // an uninstall takes the rights before the pods have ended
			}
			use.Forbidden = append(use.Forbidden, fmt.Sprintf("%s: %s %s (line %d)", program, e.Verb, e.URI, number))
			continue
		}
		if e.ObjectRef == nil {
			continue
		}
		right := e.right(program)
		seen[right] = true
		// An API server that cannot send a list as the beginning of a watch is asked for the
		// list itself.
		if e.Verb == "watch" && strings.Contains(e.URI, "sendInitialEvents=true") {
			right.Verb = "list"
			seen[right] = true
		}
	}
	use.Rights = slices.SortedFunc(maps.Keys(seen), compare)
	return use, nil
}

// ours tells whether a role or binding of that name is one of the programs'.
func ours(name string) bool {
	return slices.ContainsFunc(Programs, func(program string) bool { return name == program || name == "kube-queue-"+program })
}

// withdraw keeps the names of our roles and bindings that are deleted at the moment.
func (e *entry) withdraw(withdrawn map[string]bool) {
	if e.ObjectRef == nil || e.ObjectRef.APIGroup != rbacv1.GroupName || e.Stage != "ResponseComplete" || !ours(e.ObjectRef.Name) {
		return
	}
	object := e.ObjectRef.Resource + "/" + e.ObjectRef.Name
	switch e.Verb {
	case "delete":
		withdrawn[object] = true
	case "create", "patch":
		delete(withdrawn, object)
	}
}

// program that made the request, if one of ours did.
func (e *entry) program() (string, bool) {
	agent, _, _ := strings.Cut(e.UserAgent, "/")
	if e.User.Username != account+agent || !slices.Contains(Programs, agent) {
		return "", false
	}
	return agent, true
}

func (e *entry) right(program string) Right {
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
