// Package scenario says what a measurement plays: a quota tree, the units that
// arrive in its leaves, and what is to come of it.
//
// Words. A scenario has parents, each with equal leaves; a leaf is a quota group with a
// namespace of its own. A class is a kind of unit: what it requests and how long it
// runs. An arrival is one unit of a class in a leaf, at a time after the start. In a
// scenario of kind Stream units arrive at their times and end after their run time. In
// one of kind Backlog all arrive at once while there is no room, room is made later,
// and none ends. Jobs is the scenario of batch Jobs, which need no tree.
//
// Invariant: the same file always gives the same tree and the same arrivals, in the
// same order.
package scenario

import (
	"fmt"
	"time"

	"sigs.k8s.io/yaml"
)

// Kind is how a scenario is played.
type Kind string

// The kinds; Stream is the default.
const (
	Stream  Kind = "Stream"
	Backlog Kind = "Backlog"
)

// Scenario is a scenario file.
type Scenario struct {
	// Name is the file's, without its ending.
	Name  string `json:"-"`
	About string `json:"about"`
	Kind  Kind   `json:"kind"`
	// Policy is that of all queues.
	Policy  string      `json:"policy"`
	Parents Group       `json:"parents"`
	Leaves  Group       `json:"leaves"`
	Classes []Class     `json:"classes"`
	Backlog BacklogPlan `json:"backlog"`
	Bars    Bars        `json:"bars"`
}

// Group is so many equal nodes of the tree; of leaves, so many in each parent.
type Group struct {
	Count int     `json:"count"`
	Min   Amounts `json:"min"`
	Max   Amounts `json:"max"`
}

// Class is a kind of unit.
type Class struct {
	Name string `json:"name"`
	// Count is how many arrive in each leaf.
	Count    int     `json:"count"`
	Requests Amounts `json:"requests"`
	// Shapes has the units request 1, 2, ... so many times the requests, in turn.
	Shapes   int      `json:"shapes"`
	Priority int32    `json:"priority"`
	RunTime  Duration `json:"runTime"`
	// Every is the time between two of them in a leaf.
	Every Duration `json:"every"`
}

// BacklogPlan is what is done with a backlog.
type BacklogPlan struct {
	// Settle is how long nothing must be written before all is said to wait.
	Settle Duration `json:"settle"`
	// Rest is how long is waited then, Idle for how long the waiting is measured: after
	// much work a Go program gives memory back for a while, with a hundredth of all cores.
	Rest Duration `json:"rest"`
	Idle Duration `json:"idle"`
	// Room is for how many units of each leaf there is room then, More for how many
	// more when the controller is started again.
	Room int `json:"room"`
	More int `json:"more"`
}

// Bars are what the figures must reach; a bar that is left out is none.
type Bars struct {
	WallSeconds *float64 `json:"wallSeconds"`
	// UsefulWork is a share, between 0 and 1.
	UsefulWork *float64 `json:"usefulWork"`
	// WritesPerUnit are kube-queue's, status of queues and tree apart.
	WritesPerUnit *float64 `json:"writesPerUnit"`
	// ControllerCPU is in milliseconds a unit.
	ControllerCPU *float64 `json:"controllerCPU"`
	// ControllerMiB is resident memory, with all units there.
	ControllerMiB     *float64 `json:"controllerMiB"`
	ReleasesPerSecond *float64 `json:"releasesPerSecond"`
	// IdleCPU is a share of a core, between 0 and 1.
	IdleCPU        *float64 `json:"idleCPU"`
	RestartSeconds *float64 `json:"restartSeconds"`
}

// Duration is written as 1.5s or 200ms.
type Duration struct {
	time.Duration
	// unreadable is the text in the file; the check, which knows the field, reports it.
	unreadable string
}

// UnmarshalText reads it; package yaml hands it what is in the file.
func (d *Duration) UnmarshalText(text []byte) error {
	var err error
	if d.Duration, err = time.ParseDuration(string(text)); err != nil {
		d.unreadable = string(text)
	}
	return nil
}

func (d *Duration) check(field string) error {
	if d.unreadable != "" {
		return fmt.Errorf("%s: %q is no duration such as 200ms or 1.5s", field, d.unreadable)
	}
	return nil
}

// Names are those of the scenarios that come with the tool.
func Names() []string { return unitFiles.names() }

// Load is the scenario of that name, or in the file of that path.
func Load(nameOrPath string) (*Scenario, error) {
	file, data, err := unitFiles.load(nameOrPath)
	if err != nil {
		return nil, err
	}
	return Read(file, data)
}

// Read reads a scenario; file is for its name and for errors.
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
