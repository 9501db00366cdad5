package scenario

import (
	"cmp"
	"slices"
	"time"
)

// Arrival is one unit.
type Arrival struct {
	// At is the time after the start.
	At time.Duration
	// Leaf and Class are indexes. Number counts the units of the class in the leaf. All start at 0.
	Leaf, Class, Number int32
}

// Stretch multiplies all times by a factor: intervals between arrivals, run times, and the bar for
// the total. Use a factor of 2 for an API server with half the writes per second that the bars
// assume.
func (s *Scenario) Stretch(factor float64) {
	for i := range s.Classes {
		for _, d := range []*Duration{&s.Classes[i].RunTime, &s.Classes[i].Every} {
			d.Duration = time.Duration(float64(d.Duration) * factor)
		}
	}
	if wall := s.Bars.WallSeconds; wall != nil {
		s.Bars.WallSeconds = new(*wall * factor)
	}
}

// Units returns the total number of arrivals.
func (s *Scenario) Units() int {
	leaf := 0
	for _, class := range s.Classes {
		leaf += class.Count
	}
	return leaf * s.LeafCount()
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

// shape returns the factor of a unit's requests.
func (c *Class) shape(number int) int { return number%c.Shapes + 1 }

// RequestsOf returns the requests of the unit with this number.
func (c *Class) RequestsOf(number int) Amounts { return c.Requests.times(int64(c.shape(number))) }

// ShapeOf returns the index of a unit's shape, from 0.
func (c *Class) ShapeOf(number int) int { return c.shape(number) - 1 }

// Work returns the sum of the cpu seconds of all units.
func (s *Scenario) Work() float64 {
	work := 0.0
	for _, class := range s.Classes {
		for number := range class.Count {
			work += class.Requests.cpu() * float64(class.shape(number)) * class.RunTime.Seconds()
		}
	}
	return work * float64(s.LeafCount())
}

// Capacity returns the sum of the cpu of all parents, or 0 without a limit.
func (s *Scenario) Capacity() float64 { return s.Parents.Max.cpu() * float64(s.Parents.Count) }
