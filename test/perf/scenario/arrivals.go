package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
)

// Arrival is one unit.
type Arrival struct {
	// At is the time after the start.
	At time.Duration
	// Leaf and Class are indexes. Number counts the units of the class in the leaf. All start at 0.
	Leaf, Class, Number int32
}

// Arrivals returns all arrivals in order of time. Each class of each leaf has its own intervals,
// and all start at 0.
func (s *Scenario) Arrivals() []Arrival {
	arrivals := make([]Arrival, 0, s.Units())
	for c, class := range s.Classes {
		for number := range class.Count {
			for leaf := range s.LeafCount() {
				arrivals = append(arrivals, Arrival{
					At: time.Duration(number) * class.Every.Duration, Leaf: int32(leaf), Class: int32(c), Number: int32(number),
				})
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
func (c *Class) shape(number int) int { return number%c.Shapes + 1 }

// RequestsOf returns the requests of the unit with this number.
func (c *Class) RequestsOf(number int) corev1.ResourceList {
	return times(c.Requests, int64(c.shape(number)))
}

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

// Tree returns the root of the quota tree. For a backlog this is a tree in which no unit fits.
func (s *Scenario) Tree() quotav1beta1.ElasticQuotaNode {
	if s.Backlog != nil {
		return s.TreeWithRoom(0)
	}
	return s.tree(s.Leaves.Max)
}

// TreeWithRoom returns the tree of a backlog in which exactly the first units of each leaf fit.
func (s *Scenario) TreeWithRoom(units int) quotav1beta1.ElasticQuotaNode {
	class, room := &s.Classes[0], int64(0)
	for n := range units {
		room += int64(class.shape(n))
	}
	return s.tree(times(class.Requests, room))
}

func (s *Scenario) tree(leafMax corev1.ResourceList) quotav1beta1.ElasticQuotaNode {
	root, names := quotav1beta1.ElasticQuotaNode{Name: "perf"}, s.Namespaces()
	for p := range s.Parents.Count {
		parent := quotav1beta1.ElasticQuotaNode{Name: fmt.Sprintf("perf-%d", p), Min: s.Parents.Min, Max: s.Parents.Max}
		for _, name := range names[p*s.Leaves.Count : (p+1)*s.Leaves.Count] {
			parent.Children = append(parent.Children, quotav1beta1.ElasticQuotaNode{Name: name, Namespaces: []string{name}, Min: s.Leaves.Min, Max: leafMax})
		}
		root.Children = append(root.Children, parent)
	}
	return root
}
