// Package scenario describes a measurement: a quota tree, the units that arrive in its leaves, and
// the values that the figures must reach.
//
// Terms. A scenario has parents, each with equal leaves. A leaf is a quota group with its own
// namespace. A class is a group of units with their requests and run time. An arrival is one unit
// of a class in a leaf, at a time after the start. In a scenario of kind Stream, units arrive at
// their times and end after their run time. In a scenario of kind Backlog, all units arrive at the
// same time without quota, the quota is increased later, and no unit ends.
//
// Invariant: the same file always gives the same tree and the same arrivals, in the same order.
package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Kind is the kind of a scenario.
type Kind string

// The kinds. Stream is the default.
const (
	Stream  Kind = "Stream"
	Backlog Kind = "Backlog"
)

// Policies lists the policies of a queue.
var Policies = []string{"RoundRobin", "Block", "Priority"}

// Scenario is a scenario file.
type Scenario struct {
	// Name is the name of the file without its extension.
	Name  string `json:"-"`
	About string `json:"about"`
	Kind  Kind   `json:"kind"`
	// Policy is the policy of all queues.
	Policy  string      `json:"policy"`
	Parents Group       `json:"parents"`
	Leaves  Group       `json:"leaves"`
	Classes []Class     `json:"classes"`
	Backlog BacklogPlan `json:"backlog"`
	Bars    Bars        `json:"bars"`
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

// BacklogPlan contains the steps of a backlog.
type BacklogPlan struct {
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

// Load reads the scenario with this name, or the file with this path.
func Load(nameOrPath string) (*Scenario, error) {
	file, data, err := unitFiles.load(nameOrPath)
	if err != nil {
		return nil, err
	}
	s := &Scenario{Name: nameOf(file), Kind: Stream, Policy: "Priority"}
	if err := yaml.UnmarshalStrict(data, s); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", file, err)
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", file, err)
	}
	return s, nil
}

// maxUnits is the maximum number of units of a file, so that a typo does not fill the disk.
const maxUnits = 2_000_000

// findings are the errors of a scenario.
type findings []error

func (f *findings) refuse(wrong bool, format string, args ...any) {
	if wrong {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

func (s *Scenario) check() error {
	var f findings
	f.refuse(s.Kind != Stream && s.Kind != Backlog, "kind: unknown kind %q; known kinds: %s, %s", s.Kind, Stream, Backlog)
	f.refuse(s.Parents.Count < 1 || s.Leaves.Count < 1, "parents.count, leaves.count: must be at least 1")
	f.refuse(len(s.Classes) == 0, "classes: at least one is needed")
	for i := range s.Classes {
		class := &s.Classes[i]
		class.Shapes = max(class.Shapes, 1)
		f.refuse(class.Count < 1 || class.Count > maxUnits, "class %s: count %d must be between 1 and %d", class.Name, class.Count, maxUnits)
		f.refuse(len(class.Requests) == 0, "class %s: set the requests of a unit, for example {cpu: 1}", class.Name)
		f.refuse(s.Kind == Stream && class.RunTime.Duration <= 0, "class %s: set the runTime of a unit, for example 200ms", class.Name)
		f.refuse(s.Kind == Backlog && (class.RunTime.Duration != 0 || class.Every.Duration != 0),
			"class %s: runTime and every have no effect in kind %s, whose units are created at once and never end", class.Name, Backlog)
	}
	if s.Kind == Backlog {
		s.checkBacklog(&f)
	} else {
		f.refuse(s.Backlog != BacklogPlan{}, "backlog: has no effect in kind %s", Stream)
	}
	if err := errors.Join(append(f, CheckPolicy(s.Policy))...); err != nil {
		return err
	}
	f.refuse(s.Units() > maxUnits, "the scenario has %d units; the maximum is %d", s.Units(), maxUnits)
	return errors.Join(f...)
}

func (s *Scenario) checkBacklog(f *findings) {
	plan := s.Backlog
	f.refuse(len(s.Classes) != 1, "classes: kind %s requires exactly one, because the order of its units decides which of them have room", Backlog)
	f.refuse(plan.Settle.Duration <= 0 || plan.Idle.Duration <= 0, "backlog.settle, backlog.idle: both must be positive, for example 5s and 20s")
	f.refuse(plan.Room < 1 || plan.More < 1, "backlog.room, backlog.more: both must be positive")
	f.refuse(len(s.Classes) > 0 && plan.Room+plan.More > s.Classes[0].Count, "backlog.room, backlog.more: %d and %d exceed the units of a leaf", plan.Room, plan.More)
	f.refuse(len(s.Parents.Max)+len(s.Leaves.Max)+len(s.Leaves.Min) > 0,
		"parents.max, leaves.max, leaves.min: remove them; the limits of a backlog are computed from its room")
}

// CheckPolicy returns an error for an unknown policy.
func CheckPolicy(policy string) error {
	if !slices.Contains(Policies, policy) {
		return fmt.Errorf("unknown policy %q; known policies: %s", policy, strings.Join(Policies, ", "))
	}
	return nil
}
