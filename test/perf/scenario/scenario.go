// Package scenario describes a measurement: a quota tree, the units that arrive in its leaves, and
// the values that the figures must reach.
//
// Terms. A scenario has parents, each with equal leaves. A leaf is a quota group with its own
// namespace. A class is a group of units with their requests and run time. An arrival is one unit
// of a class in a leaf, at a time after the start. Units arrive at their times, and end after their
// run time. In a scenario with a backlog, all units arrive at the same time without quota, the quota
// is increased later, and no unit ends.
//
// Invariant: the same file always gives the same tree and the same arrivals, in the same order.
package scenario

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Policies lists the policies of a queue.
var Policies = []string{"RoundRobin", "Block", "Priority"}

// Scenario is a scenario file.
type Scenario struct {
	// Name is the name of the file without its extension.
	Name  string `json:"-"`
	About string `json:"about"`
	// Policy is the policy of all queues.
	Policy  string   `json:"policy"`
	Parents Group    `json:"parents"`
	Leaves  Group    `json:"leaves"`
	Classes []Class  `json:"classes"`
	Backlog *Backlog `json:"backlog"`
	Bars    Bars     `json:"bars"`
}

// Group is a number of equal nodes of the tree: all parents, or the leaves of each parent.
type Group struct {
	Count int                 `json:"count"`
	Min   corev1.ResourceList `json:"min"`
	Max   corev1.ResourceList `json:"max"`
}

// Class is a group of units with equal properties.
type Class struct {
	Name string `json:"name"`
	// Count is the number of units in each leaf.
	Count    int                 `json:"count"`
	Requests corev1.ResourceList `json:"requests"`
	// Shapes is the number of request shapes. The units request 1, 2, ..., Shapes times the
	// requests, in turn.
	Shapes   int             `json:"shapes"`
	Priority int32           `json:"priority"`
	RunTime  metav1.Duration `json:"runTime"`
	// Every is the interval between two units of a leaf.
	Every metav1.Duration `json:"every"`
}

// Backlog contains the steps of a scenario whose units wait.
type Backlog struct {
	// Settle is the time without writes after which all units are considered to wait.
	Settle metav1.Duration `json:"settle"`
	// Rest is the delay before the idle measurement, and Idle its duration. After much work the Go
	// runtime returns memory for a while, which uses about 1% of all cores.
	Rest metav1.Duration `json:"rest"`
	Idle metav1.Duration `json:"idle"`
	// Room is the quota of each leaf after that, in units. More is the additional quota at the
	// restart of the controller.
	Room int `json:"room"`
	More int `json:"more"`
}

// Bars are the values that the figures must reach. All are optional.
type Bars struct {
	WallSeconds *float64 `json:"wallSeconds"`
	// UsefulWork is a fraction between 0 and 1.
	UsefulWork *float64 `json:"usefulWork"`
	// WritesPerUnit is the number of writes of kube-queue per unit, without the status of queues
	// and trees.
	WritesPerUnit *float64 `json:"writesPerUnit"`
	// ControllerCPU is in milliseconds per unit.
	ControllerCPU *float64 `json:"controllerCPU"`
	// ControllerMiB is the resident memory with all units.
	ControllerMiB     *float64 `json:"controllerMiB"`
	ReleasesPerSecond *float64 `json:"releasesPerSecond"`
	// IdleCPU is a fraction of a core, between 0 and 1.
	IdleCPU        *float64 `json:"idleCPU"`
	RestartSeconds *float64 `json:"restartSeconds"`
}

//go:embed files
var files embed.FS

// Names returns the names of the built-in scenarios.
func Names() []string {
	found, _ := fs.Glob(files, "files/*.yaml") // the pattern is valid
	for i := range found {
		found[i] = nameOf(found[i])
	}
	return found
}

func nameOf(file string) string { return strings.TrimSuffix(path.Base(file), ".yaml") }

// Load reads the built-in scenario with this name, or the file with this path.
func Load(nameOrPath string) (*Scenario, error) {
	var data []byte
	var err error
	if strings.ContainsAny(nameOrPath, "/.") {
		data, err = os.ReadFile(nameOrPath)
	} else if data, err = files.ReadFile("files/" + nameOrPath + ".yaml"); errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("unknown scenario %q; known scenarios: %s; or set the path of a file, for example ./%[1]s.yaml", nameOrPath, strings.Join(Names(), ", "))
	}
	if err != nil {
		return nil, err
	}
	s := &Scenario{Name: nameOf(nameOrPath), Policy: "Priority"}
	err = yaml.UnmarshalStrict(data, s)
	if err == nil {
		err = s.Check()
	}
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", nameOrPath, err)
	}
	return s, nil
}

// maxUnits is the maximum number of units, so that a typo does not fill the disk.
const maxUnits = 2_000_000

// Check returns what is wrong with the scenario.
func (s *Scenario) Check() error {
	var errs []error
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	refuse(!slices.Contains(Policies, s.Policy), "unknown policy %q; known policies: %s", s.Policy, strings.Join(Policies, ", "))
	refuse(s.Parents.Count < 1 || s.Leaves.Count < 1, "parents.count, leaves.count: must be at least 1")
	refuse(len(s.Classes) == 0, "classes: at least one is needed")
	for i := range s.Classes {
		class := &s.Classes[i]
		class.Shapes = max(class.Shapes, 1)
		refuse(class.Count < 1, "class %s: count must be at least 1", class.Name)
		refuse(len(class.Requests) == 0, "class %s: set the requests of a unit, for example {cpu: 1}", class.Name)
		refuse(s.Backlog == nil && class.RunTime.Duration <= 0, "class %s: set the runTime of a unit, for example 200ms", class.Name)
		refuse(s.Backlog != nil && (class.RunTime.Duration != 0 || class.Every.Duration != 0),
			"class %s: runTime and every have no effect in a backlog, whose units are created at once and never end", class.Name)
	}
	if plan := s.Backlog; plan != nil {
		refuse(len(s.Classes) != 1, "classes: a backlog requires exactly one, because the order of its units decides which of them have room")
		refuse(plan.Settle.Duration <= 0 || plan.Idle.Duration <= 0, "backlog.settle, backlog.idle: both must be positive, for example 5s and 20s")
		refuse(plan.Room < 1 || plan.More < 1, "backlog.room, backlog.more: both must be positive")
		refuse(len(s.Classes) > 0 && plan.Room+plan.More > s.Classes[0].Count, "backlog.room, backlog.more: %d and %d exceed the units of a leaf", plan.Room, plan.More)
		refuse(len(s.Parents.Max)+len(s.Leaves.Max)+len(s.Leaves.Min) > 0,
			"parents.max, leaves.max, leaves.min: remove them; the limits of a backlog are computed from its room")
	}
	if len(errs) == 0 {
		refuse(s.Units() > maxUnits, "the scenario has %d units; the maximum is %d", s.Units(), maxUnits)
	}
	return errors.Join(errs...)
}
