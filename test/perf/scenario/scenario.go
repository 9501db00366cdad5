// Package scenario describes a measurement: a quota tree, the units that arrive in its leaves, and
// the values that the figures must reach.
//
// Terms. A scenario has parents, each with equal leaves. A leaf is a quota group with its own
// namespace. A class is a group of units with their requests and run time. An arrival is one unit
// of a class in a leaf, at a time after the start. In a scenario of kind Stream, units arrive at
// their times and end after their run time. In a scenario of kind Backlog, all units arrive at the
// same time without quota, the quota is increased later, and no unit ends. Jobs is the scenario of
// batch Jobs, which need no tree.
//
// Invariant: the same file always gives the same tree and the same arrivals, in the same order.
package scenario

import (
	"fmt"
	"time"

	"sigs.k8s.io/yaml"
)

// Kind is the kind of a scenario.
type Kind string

// The kinds. Stream is the default.
const (
	Stream  Kind = "Stream"
	Backlog Kind = "Backlog"
)

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
	Count int     `json:"count"`
	Min   Amounts `json:"min"`
	Max   Amounts `json:"max"`
}

// Class is a group of units with equal properties.
type Class struct {
	Name string `json:"name"`
	// Count is the number of units in each leaf.
	Count    int     `json:"count"`
	Requests Amounts `json:"requests"`
	// Shapes is the number of request shapes. The units request 1, 2, ..., Shapes times the
	// requests, in turn.
	Shapes   int      `json:"shapes"`
	Priority int32    `json:"priority"`
	RunTime  Duration `json:"runTime"`
	// Every is the interval between two units of a leaf.
	Every Duration `json:"every"`
}

// BacklogPlan contains the steps of a backlog.
type BacklogPlan struct {
	// Settle is the time without writes after which all units are considered to wait.
	Settle Duration `json:"settle"`
	// Rest is the delay before the idle measurement, and Idle its duration. After much work the Go
	// runtime returns memory for a while, which uses about 1% of all cores.
	Rest Duration `json:"rest"`
	Idle Duration `json:"idle"`
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

// Duration is a duration such as 1.5s or 200ms.
type Duration struct {
	time.Duration
	// unreadable is an invalid text. The check reports it, because it knows the field.
	unreadable string
}

// UnmarshalText parses a duration.
func (d *Duration) UnmarshalText(text []byte) error {
	var err error
	if d.Duration, err = time.ParseDuration(string(text)); err != nil {
		d.unreadable = string(text)
	}
	return nil
}

func (d *Duration) check(field string) error {
	if d.unreadable != "" {
		return fmt.Errorf("%s: %q is not a duration such as 200ms or 1.5s", field, d.unreadable)
	}
	return nil
}

// Names returns the names of the built-in scenarios.
func Names() []string { return unitFiles.names() }

// Load reads the scenario with this name, or the file with this path.
func Load(nameOrPath string) (*Scenario, error) {
	file, data, err := unitFiles.load(nameOrPath)
	if err != nil {
		return nil, err
	}
	return Read(file, data)
}

// Read parses a scenario. file is for its name and for errors.
func Read(file string, data []byte) (*Scenario, error) {
	s := &Scenario{Name: nameOf(file), Kind: Stream, Policy: "Priority"}
	if err := yaml.UnmarshalStrict(data, s); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", file, err)
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", file, err)
	}
	return s, nil
}
