// Package loadgen creates the units of a scenario and simulates their jobs, as job-extensions
// would: it creates a unit at its time, observes its release and writes its end after its run time.
//
// Terms. A scenario has a quota tree, the units that arrive in its leaves, and the values that the
// figures must reach. It has parents, each with equal leaves. A leaf is a quota group with its own
// namespace. A class is a group of units with their requests and run time. An arrival is one unit
// of a class in a leaf, at a time after the start. In a scenario with a backlog, all units arrive at
// the same time without quota, the quota is increased later, and no unit ends.
//
// The load generator shares the machine with the programs that it measures, so it discards responses and keeps only
// some fields of units. It sends the same writes as job-extensions, and no others.
//
// Invariants: the same file always gives the same tree and the same arrivals, in the same order. A unit is created on
// time even if others are late (an open loop). A late unit is created immediately, and its delay is recorded.
package loadgen

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
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
	// Rest is the delay before the idle measurement, and Idle its duration. After heavy work, the Go runtime returns
	// memory for a while, which uses about 1% of all cores.
	Rest metav1.Duration `json:"rest"`
	Idle metav1.Duration `json:"idle"`
	// Room is the quota of each leaf after the idle measurement, in units. More is the additional quota at the
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
	data, err := files.ReadFile("files/" + nameOrPath + ".yaml")
	if err != nil {
		data, err = os.ReadFile(nameOrPath)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("unknown scenario %q; known scenarios: %s; or set the path of a file", nameOrPath, strings.Join(Names(), ", "))
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
		refuse(len(s.Parents.Max)+len(s.Leaves.Max)+len(s.Leaves.Min) > 0,
			"parents.max, leaves.max, leaves.min: remove them; the limits of a backlog are computed from its room")
	}
	return errors.Join(errs...)
}

// Arrival is one unit.
type Arrival struct {
	// At is the time after the start.
	At time.Duration
	// Leaf and Class are indexes. Number counts the units of the class in the leaf. All start at 0.
	Leaf, Class, Number int
}

// Arrivals returns all arrivals in order of time. Each class of each leaf has its own intervals,
// and all start at 0.
func (s *Scenario) Arrivals() []Arrival {
	arrivals := make([]Arrival, 0, s.Units())
	for c, class := range s.Classes {
		for number := range class.Count {
			for leaf := range s.LeafCount() {
				arrivals = append(arrivals, Arrival{time.Duration(number) * class.Every.Duration, leaf, c, number})
			}
		}
	}
	slices.SortStableFunc(arrivals, func(a, b Arrival) int { return cmp.Compare(a.At, b.At) })
	return arrivals
}

// Units returns the total number of arrivals.
func (s *Scenario) Units() int {
	leaf := 0
	for _, class := range s.Classes {
		leaf += class.Count
	}
	return leaf * s.LeafCount()
}

// Stretch multiplies all times by a factor: intervals between arrivals, run times, and the bar for
// the total. Use a factor of 2 for an API server with half the writes per second that the bars
// assume.
func (s *Scenario) Stretch(factor float64) {
	for i := range s.Classes {
		for _, d := range []*metav1.Duration{&s.Classes[i].RunTime, &s.Classes[i].Every} {
			d.Duration = time.Duration(float64(d.Duration) * factor)
		}
	}
	if wall := s.Bars.WallSeconds; wall != nil {
		s.Bars.WallSeconds = new(*wall * factor)
	}
}

// shape returns the factor of a unit's requests.
func (c *Class) shape(number int) int64 { return int64(number%c.Shapes + 1) }

func times(list corev1.ResourceList, n int64) corev1.ResourceList {
	product := corev1.ResourceList{}
	for name, quantity := range list {
		quantity.Mul(n)
		product[name] = quantity
	}
	return product
}

// Work returns the sum of the cpu seconds of all units.
func (s *Scenario) Work() float64 {
	work := 0.0
	for _, class := range s.Classes {
		for number := range class.Count {
			work += class.Requests.Cpu().AsApproximateFloat64() * float64(class.shape(number)) * class.RunTime.Seconds()
		}
	}
	return work * float64(s.LeafCount())
}

// Capacity returns the sum of the cpu of all parents, or 0 without a limit.
func (s *Scenario) Capacity() float64 {
	return s.Parents.Max.Cpu().AsApproximateFloat64() * float64(s.Parents.Count)
}

// LeafCount returns the number of leaves of all parents.
func (s *Scenario) LeafCount() int { return s.Parents.Count * s.Leaves.Count }

// Namespaces returns the namespaces of all leaves, which are also the names of their nodes.
func (s *Scenario) Namespaces() []string {
	names := make([]string, s.LeafCount())
	for n := range names {
		names[n] = fmt.Sprintf("perf-%d-%d", n/s.Leaves.Count, n%s.Leaves.Count)
	}
	return names
}

// Tree returns the root of the quota tree. For a backlog, room is the number of units of each leaf that fit, in the
// order of arrival.
func (s *Scenario) Tree(room int) quotav1beta1.ElasticQuotaNode {
	leafMax := s.Leaves.Max
	if s.Backlog != nil {
		class, all := &s.Classes[0], int64(0)
		for number := range room {
			all += class.shape(number)
		}
		leafMax = times(class.Requests, all)
	}
	root := quotav1beta1.ElasticQuotaNode{Name: "perf"}
	for leaves := range slices.Chunk(s.Namespaces(), s.Leaves.Count) {
		parent := quotav1beta1.ElasticQuotaNode{Name: fmt.Sprintf("perf-%d", len(root.Children)), Min: s.Parents.Min, Max: s.Parents.Max}
		for _, name := range leaves {
			parent.Children = append(parent.Children, quotav1beta1.ElasticQuotaNode{Name: name, Namespaces: []string{name}, Min: s.Leaves.Min, Max: leafMax})
		}
		root.Children = append(root.Children, parent)
	}
	return root
}

// heldPerLeaf is the number of units per leaf that hold quota at the same time.
const heldPerLeaf = 2

// TurnoverScenario returns a scenario with a tree of this many nodes, at least 3, and at least this many units. All
// units arrive at once. Parents are full, and leaves borrow from each other.
func TurnoverScenario(name string, nodes, units int) *Scenario {
	parents := 1
	for p := 2; p*p <= nodes-1; p++ {
		if (nodes-1)%p == 0 {
			parents = p
		}
	}
	leaves := (nodes-1)/parents - 1
	s := Uniform(name, parents*leaves, units)
	s.Parents = Group{Count: parents, Max: cpu(heldPerLeaf * leaves)}
	s.Leaves = Group{Count: leaves, Min: cpu(1), Max: cpu(2 * heldPerLeaf)}
	return s
}

// Uniform returns a scenario without quota limits. At least this many equal units arrive at once, evenly spread over
// the leaves.
func Uniform(name string, leaves, units int) *Scenario {
	return &Scenario{
		Name: name, Policy: "Priority",
		Parents: Group{Count: 1}, Leaves: Group{Count: leaves},
		Classes: []Class{{Name: name, Count: (units + leaves - 1) / leaves, Shapes: 1, Requests: cpu(1)}},
	}
}

func cpu(count int) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(count), resource.DecimalSI)}
}
